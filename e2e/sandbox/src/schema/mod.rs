//! How lists and maps of any kind merge.

mod builtin;
mod list_types;

pub use list_types::TypeSchema;
pub use structural_schema::ListType;

/// A path in an object: field names, and `*` for the items of a list.
type Path<'a> = [&'a str];
