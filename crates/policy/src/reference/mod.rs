//! References to other data: the data to fetch, and the fetched answers.
//!
//! This crate fetches nothing: first a rule returns its references for an object, then it is evaluated with
//! the answers.

mod data_reference;
mod placeholder;
mod reader;
mod rule_references;
#[cfg(test)]
mod tests;

pub use self::data_reference::{
    Answers, DataReference, FetchedAnswer, HttpRequest, ObjectSelection, ReferencedObjects,
};
pub(crate) use self::reader::check_url;
pub(crate) use self::rule_references::{ReferenceResolution, RuleReferences};
