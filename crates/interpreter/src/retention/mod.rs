//! Values of an observed object that a desired object keeps.

pub mod fields;
mod metadata;

pub use self::{
    fields::{RetainedFields, RetainedFieldsError},
    metadata::retain_metadata,
};
