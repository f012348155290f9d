//! What a path is made of.

use std::{fmt, str::FromStr};

use serde_json::{Map, Value};

use crate::{find::follow, parse::PathError};

/// A path, compiled. Prints as it was written.
///
/// # Guarantees
///
/// - Finding takes time in proportion to the object's size and depth and to the path's length, whatever the path: what several of
///   its parts lead to is found once.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    pub(crate) text: String,
    pub(crate) steps: Vec<PathStep>,
}

/// From values to values in them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PathStep {
    /// The field of that name.
    Field(String),
    /// Every item or field.
    Wildcard,
    /// The item at an index; from the back where it is negative.
    Index(i64),
    /// Items from `start` to before `end`, every `step`th.
    Slice {
        start: Option<i64>,
        end: Option<i64>,
        step: usize,
    },
    /// The items or fields for which it holds.
    Filter(PathFilter),
    /// What any of them leads to.
    Union(Vec<Self>),
    /// The value and all below it.
    Descent,
}

/// What has to hold for an item.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PathFilter {
    /// Something is there.
    Exists(Vec<PathStep>),
    /// Two values compare so.
    Compare(PathOperand, PathOperator, PathOperand),
}

/// What is compared.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PathOperand {
    /// What these lead to from the item.
    Steps(Vec<PathStep>),
    /// A value.
    Literal(Value),
}

/// How two values compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathOperator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

// === impl Path ===

impl Path {
    /// The values that the path leads to, each once, in the order of the object; of `..`, a value before those below it.
    pub fn find<'a>(&self, object: &'a Value) -> Vec<&'a Value> {
        follow(object, &self.steps)
    }

    /// The first value that the path leads to.
    pub fn first<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        self.find(object).into_iter().next()
    }

    /// Whether it is made of names of fields alone, and so leads to one place that can be set.
    pub fn is_plain(&self) -> bool {
        plain(&self.steps).is_some()
    }

    /// Whether it leads to the object itself.
    pub fn is_root(&self) -> bool {
        self.steps.is_empty()
    }

    /// The field of the object below which everything is that it leads to.
    pub fn first_field(&self) -> Option<&str> {
        match self.steps.first() {
            Some(PathStep::Field(name)) => Some(name),
            _ => None,
        }
    }

    /// Sets the value at a plain path, and makes what is missing or no object on the way there. Tells whether the path is plain.
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

/// The names of steps that are fields alone.
pub(crate) fn plain(steps: &[PathStep]) -> Option<Vec<&str>> {
    let names = steps.iter().map(|step| match step {
        PathStep::Field(name) => Some(name.as_str()),
        _ => None,
    });
    names.collect()
}

/// Sets the value below fields, and makes those that are missing or no objects.
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

// === impl PathFilter ===

impl PathFilter {
    /// The field and the value that an item has that is selected, where the filter asks for exactly that.
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
