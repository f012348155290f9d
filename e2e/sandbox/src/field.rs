//! Errors of single fields, as `k8s.io/apimachinery` words them.

use std::fmt;

use serde_json::Value;

use crate::{Cause, StatusError, Subject};

/// What is wrong with a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// `Required value`.
    Required,
    /// `Invalid value: VALUE`.
    Invalid(Value),
    /// `Invalid value: VALUE`, with the cause `FieldValueTypeInvalid`.
    TypeInvalid(Value),
    /// `Duplicate value: VALUE`.
    Duplicate(Value),
    /// `Forbidden`.
    Forbidden,
    /// `Unsupported value: VALUE`.
    Unsupported(Value),
    /// `Too long`.
    TooLong,
    /// `Too many: ACTUAL`.
    TooMany(usize),
    /// `Not found: VALUE`.
    NotFound(Value),
    /// `Internal error`.
    Internal,
}

/// One field of an object and what is wrong with it.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// The path, for example `spec.ports[0].port`.
    pub field: String,
    /// What is wrong.
    pub fault: Fault,
    /// More words; may be empty.
    pub detail: String,
}

// === impl Fault ===

impl Fault {
    /// The cause's reason, for example `FieldValueInvalid`.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid(_) => "FieldValueInvalid",
            Self::TypeInvalid(_) => "FieldValueTypeInvalid",
            Self::Duplicate(_) => "FieldValueDuplicate",
            Self::Forbidden => "FieldValueForbidden",
            Self::Unsupported(_) => "FieldValueNotSupported",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany(_) => "FieldValueTooMany",
            Self::NotFound(_) => "FieldValueNotFound",
            Self::Internal => "InternalError",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Required => write!(f, "Required value"),
            Self::Invalid(value) | Self::TypeInvalid(value) => write!(f, "Invalid value: {value}"),
            Self::Duplicate(value) => write!(f, "Duplicate value: {value}"),
            Self::Forbidden => write!(f, "Forbidden"),
            Self::Unsupported(value) => write!(f, "Unsupported value: {value}"),
            Self::TooLong => write!(f, "Too long"),
            Self::TooMany(actual) => write!(f, "Too many: {actual}"),
            Self::NotFound(value) => write!(f, "Not found: {value}"),
            Self::Internal => write!(f, "Internal error"),
        }
    }
}

// === impl FieldError ===

impl FieldError {
    /// An error of `field`.
    pub fn new(field: impl Into<String>, fault: Fault, detail: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            fault,
            detail: detail.into(),
        }
    }

    /// The message without the field's path: what becomes the message of the cause.
    pub fn message(&self) -> String {
        match self.detail.as_str() {
            "" => self.fault.to_string(),
            detail => format!("{}: {detail}", self.fault),
        }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message())
    }
}

/// The 422 that the API answers when fields of an object are wrong.
///
/// `kind` is the object's kind, `group` its API group, empty for core.
pub fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> StatusError {
    let subject = if group.is_empty() {
        kind.to_owned()
    } else {
        format!("{kind}.{group}")
    };
    let list = match errors {
        [error] => error.to_string(),
        errors => format!(
            "[{}]",
            errors
                .iter()
                .map(FieldError::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        ),
    };
    StatusError {
        subject: Subject {
            name: name.to_owned(),
            group: group.to_owned(),
            kind: kind.to_owned(),
            ..Subject::default()
        },
        causes: errors
            .iter()
            .map(|error| Cause {
                reason: error.fault.reason().to_owned(),
                message: error.message(),
                field: error.field.clone(),
            })
            .collect(),
        ..StatusError::new(422, "Invalid", format!("{subject} \"{name}\" is invalid: {list}"))
    }
}
