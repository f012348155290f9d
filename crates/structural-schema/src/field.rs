//! Field errors in the wording of `k8s.io/apimachinery`.

use std::fmt;

use serde_json::Value;

/// The type of a field error.
#[derive(Clone, Debug, PartialEq)]
pub enum Violation {
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

/// A field of an object and its error.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// The path, for example `spec.ports[0].port`.
    pub field: String,
    /// The type of error, with the value.
    pub fault: Violation,
    /// The rest of the message; may be empty.
    pub detail: String,
}

impl Violation {
    /// Returns the reason of the status cause, for example `FieldValueInvalid`.
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

    fn name(&self) -> &'static str {
        match self {
            Self::Required => "Required value",
            Self::Invalid(_) | Self::TypeInvalid(_) => "Invalid value",
            Self::Duplicate(_) => "Duplicate value",
            Self::Forbidden => "Forbidden",
            Self::Unsupported(_) => "Unsupported value",
            Self::TooLong => "Too long",
            Self::TooMany(_) => "Too many",
            Self::NotFound(_) => "Not found",
            Self::Internal => "Internal error",
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::Invalid(value)
            | Self::TypeInvalid(value)
            | Self::Duplicate(value)
            | Self::Unsupported(value)
            | Self::NotFound(value) => write!(f, ": {value}"),
            Self::TooMany(actual) => write!(f, ": {actual}"),
            Self::Required | Self::Forbidden | Self::TooLong | Self::Internal => Ok(()),
        }
    }
}

impl FieldError {
    /// Creates an error of `field`.
    pub fn new(field: impl Into<String>, fault: Violation, detail: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            fault,
            detail: detail.into(),
        }
    }

    /// Returns the message without the field's path: the message of the status cause.
    pub fn message(&self) -> String {
        match self.detail.as_str() {
            "" => self.fault.to_string(),
            detail => format!("{}: {detail}", self.fault),
        }
    }

    /// Returns the error without the invalid value, for readers who may not read the object.
    pub fn without_value(&self) -> String {
        let mut words = Vec::new();
        if !self.field.is_empty() {
            words.push(self.field.as_str());
        }
        words.push(self.fault.name());
        let mut detail = self.detail.as_str();
        if let Violation::Invalid(Value::String(value)) = &self.fault {
            detail = detail.strip_suffix(&format!(": {value:?}")).unwrap_or(detail);
        }
        if !detail.is_empty() {
            words.push(detail);
        }
        words.join(": ")
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message())
    }
}
