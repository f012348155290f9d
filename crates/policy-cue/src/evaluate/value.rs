//! Values of expressions.

use std::{
    borrow::Borrow,
    hash::{Hash, Hasher},
    ops::Deref,
    rc::Rc,
};

use serde_json::Value;

use crate::{evaluate::node::NodeId, kind::KindSet, number::CueNumber};

/// A reference to a part of the program or its inputs, or a shared new value.
pub(crate) enum SharedRef<'a, T: ?Sized> {
    Borrowed(&'a T),
    Made(Rc<T>),
}

/// A value, which may not be concrete.
#[derive(Clone)]
pub(crate) enum CueValue<'a> {
    Null,
    Bool(bool),
    Number(SharedRef<'a, CueNumber>),
    Text(SharedRef<'a, str>),
    /// Any value of these kinds.
    Kind(KindSet),
    /// An undecided choice.
    Choice(Rc<Choice<'a>>),
    /// An object or array of an input.
    Json(&'a Value),
    /// An evaluated struct or list.
    Node(NodeId),
}

/// The remaining values of a disjunction, defaults first; at least two.
pub(crate) struct Choice<'a> {
    pub(crate) values: Vec<CueValue<'a>>,
    pub(crate) defaults: usize,
    pub(crate) has_marks: bool,
}

#[derive(Clone)]
pub(crate) enum ValuePlace<'a> {
    Node(NodeId),
    Value(CueValue<'a>),
}

impl<T: ?Sized> Clone for SharedRef<'_, T> {
    fn clone(&self) -> Self {
        match self {
            Self::Borrowed(value) => Self::Borrowed(value),
            Self::Made(value) => Self::Made(Rc::clone(value)),
        }
    }
}

impl<T: ?Sized> Deref for SharedRef<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Self::Borrowed(value) => value,
            Self::Made(value) => value,
        }
    }
}

impl PartialEq for SharedRef<'_, str> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for SharedRef<'_, str> {}

impl Hash for SharedRef<'_, str> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl Borrow<str> for SharedRef<'_, str> {
    fn borrow(&self) -> &str {
        self
    }
}

impl<'a> CueValue<'a> {
    pub(crate) fn number(number: CueNumber) -> Self {
        Self::Number(SharedRef::Made(Rc::new(number)))
    }

    pub(crate) fn integer(number: i64) -> Self {
        Self::number(CueNumber::integer(number.into()))
    }

    pub(crate) fn text(text: &str) -> Self {
        Self::Text(SharedRef::Made(text.into()))
    }

    /// `None` for a number out of the range of decimals.
    pub(crate) fn from_json(value: &'a Value) -> Option<Self> {
        Some(match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => Self::number(CueNumber::from_json(number)?),
            Value::String(text) => Self::Text(SharedRef::Borrowed(text)),
            Value::Array(_) | Value::Object(_) => Self::Json(value),
        })
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn as_number(&self) -> Option<&CueNumber> {
        match self {
            Self::Number(number) => Some(number),
            _ => None,
        }
    }
}
