//! Values that come from elsewhere: what has to be fetched, and what was.
//!
//! It is in two steps, since nothing is fetched here: first a rule says what it needs for an object, then it is evaluated with the
//! answers.

mod data_reference;
mod placeholder;
mod reader;
mod rule_references;
#[cfg(test)]
mod tests;

pub use self::data_reference::{
    Answers, DataReference, FetchedAnswer, HttpRequest, ReferencedObjects, WhichObjects,
};
pub(crate) use self::reader::check_url;
pub(crate) use self::rule_references::{ReferenceResolution, RuleReferences};
