//! Field errors, and the `Status` that reports them.

use crate::{Cause, StatusError, Subject};

pub use structural_schema::{FieldError, Violation};

/// Returns the 422 for an object with invalid fields.
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
