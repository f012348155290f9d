//! Parsed paths.

use std::{fmt, str::FromStr};

use serde_json::{Map, Value};

use crate::{find::follow, parse::PathError};

/// A parsed path. Displays its source text.
///
/// # Guarantees
///
/// - Finding takes time in proportion to the object's size and depth and to the path's length: a value that several parts of the path
///   select is visited once.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    pub(crate) text: String,
    pub(crate) steps: Vec<PathStep>,
}

/// One step from values to values inside them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PathStep {
    /// The field with a name.
    Field(String),
    /// Every item or field.
    Wildcard,
    /// The item at an index; a negative index counts from the end.
    Index(i64),
    /// Items from `start` up to but not including `end`, every `step`th.
    Slice {
        start: Option<i64>,
        end: Option<i64>,
        step: usize,
    },
    /// The items or fields that a filter selects.
    Filter(PathFilter),
    /// The values that any of the steps selects.
    Union(Vec<Self>),
    /// The value and all its descendants.
    Descent,
}

/// The condition of a filter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PathFilter {
    /// The steps select something.
    Exists(Vec<PathStep>),
    /// A comparison of two operands.
    Compare(PathOperand, PathOperator, PathOperand),
}

/// An operand of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PathOperand {
    /// The first value that the steps select in the item.
    Steps(Vec<PathStep>),
    /// A literal, such as `"Ready"` or `3`.
    Literal(Value),
}

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathOperator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Path {
    /// Returns the values that the path selects, each once, in the order of the object; `..` returns a value
    /// before its descendants.
    pub fn find<'a>(&self, object: &'a Value) -> Vec<&'a Value> {
        follow(object, &self.steps)
    }

    /// Returns the first value that the path selects.
    pub fn first<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        self.find(object).into_iter().next()
    }

    /// Reports whether the path consists only of field names, so that it selects one place that can be set.
    pub fn is_plain(&self) -> bool {
        plain(&self.steps).is_some()
    }

    /// Reports whether the path selects the whole object.
    pub fn is_root(&self) -> bool {
        self.steps.is_empty()
    }

    /// The top-level field that contains everything the path selects, if there is only one.
    pub fn first_field(&self) -> Option<&str> {
        match self.steps.first() {
            Some(PathStep::Field(name)) => Some(name),
            _ => None,
        }
    }

    /// Sets the value at a plain path, and replaces parents that are missing or not objects. Returns whether
    /// the path is plain.
    pub fn set(&self, object: &mut Value, value: Value) -> bool {
        let Some(names) = plain(&self.steps) else {
            return false;
        };
        set(object, &names, value);
        true
    }
}

impl FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// Returns the field names of steps that are only fields.
pub(crate) fn plain(steps: &[PathStep]) -> Option<Vec<&str>> {
    let names = steps.iter().map(|step| match step {
        PathStep::Field(name) => Some(name.as_str()),
        _ => None,
    });
    names.collect()
}

/// Sets the value below fields, and replaces parents that are missing or not objects.
pub(crate) fn set(object: &mut Value, names: &[&str], value: Value) {
    let mut place = object;
    for name in names {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        place = &mut place[*name];
    }
    *place = value;
}

impl PathFilter {
    /// Returns the field and the value of an equality filter, which every selected item has.
    pub(crate) fn identity(&self) -> Option<(Vec<&str>, &Value)> {
        match self {
            Self::Compare(PathOperand::Steps(steps), PathOperator::Equal, PathOperand::Literal(value))
            | Self::Compare(PathOperand::Literal(value), PathOperator::Equal, PathOperand::Steps(steps)) => {
                let names = plain(steps).filter(|names| !names.is_empty())?;
                Some((names, value))
            }
            _ => None,
        }
    }
}
