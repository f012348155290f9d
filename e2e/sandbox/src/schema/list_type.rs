//! How a list merges.

/// How a list merges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListType {
    /// As a whole.
    Atomic,
    /// Item by item, by value.
    Set,
    /// Item by item, by the values of these fields.
    Map(Vec<String>),
}

/// A place in an object: names of fields; `*` for the items of a list.
pub(super) type Path<'a> = [&'a str];
