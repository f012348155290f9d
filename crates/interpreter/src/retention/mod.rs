//! What of an observed object a desired one keeps.

pub mod fields;

pub use fields::{RetainedFields, RetainedFieldsError};
