//! What of an observed object a desired one keeps.

pub mod fields;
mod metadata;

pub use self::{
    fields::{RetainedFields, RetainedFieldsError},
    metadata::retain_metadata,
};
