//! Selects the policies for an object.

mod field_path;
mod mismatch;
mod policy_index;
mod selector;
#[cfg(test)]
mod tests;

pub use self::selector::SelectionError;
pub(crate) use self::{
    field_path::{field, scalar_text},
    mismatch::{label_mismatch, mismatch},
    policy_index::PolicyIndex,
    selector::{SelectedSubject, SubjectMatcher, check, selects_content},
};
