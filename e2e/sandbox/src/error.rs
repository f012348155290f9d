//! API errors, in the form of a `meta/v1 Status`.

use std::fmt;

use serde_json::{Value, json};

/// One entry of `details.causes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Machine-readable, for example `FieldValueInvalid`.
    pub reason: String,
    /// Human-readable text.
    pub message: String,
    /// The field's path, for example `spec.ports[0].port`; empty for errors without a field.
    pub field: String,
}

/// A failed request, which is returned as a `Status` object with an HTTP status code.
#[derive(Clone, Debug, PartialEq)]
pub struct StatusError {
    /// The HTTP status code.
    pub code: u16,
    /// `reason`, for example `NotFound`; empty for webhook failures, as on the real server.
    pub reason: String,
    /// `message`.
    pub message: String,
    /// `details.name`, `.group` and `.kind`; empty ones are omitted.
    pub subject: Subject,
    /// `details.causes`.
    pub causes: Vec<Cause>,
    /// `details.retryAfterSeconds` and the `Retry-After` header.
    pub retry_after: Option<u32>,
}

/// The object of a [`StatusError`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The object's name.
    pub name: String,
    /// Its API group.
    pub group: String,
    /// Its kind or its resource: the real server uses both.
    pub kind: String,
    /// Its uid.
    pub uid: String,
}

impl StatusError {
    /// Creates an error without a subject.
    pub fn new(code: u16, reason: &str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason: reason.to_owned(),
            message: message.into(),
            subject: Subject::default(),
            causes: Vec::new(),
            retry_after: None,
        }
    }

    /// Returns a 400 BadRequest.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// Returns a 500 InternalError.
    pub fn internal(problem: impl Into<String>) -> Self {
        let message = problem.into();
        let cause = Cause {
            reason: String::new(),
            message: message.clone(),
            field: String::new(),
        };
        let message = format!("Internal error occurred: {message}");
        Self {
            causes: vec![cause],
            ..Self::new(500, "InternalError", message)
        }
    }

    /// Returns the error as a `Status` object.
    pub fn to_status(&self) -> Value {
        let mut details = json!({});
        let subject = [
            ("name", &self.subject.name),
            ("group", &self.subject.group),
            ("kind", &self.subject.kind),
            ("uid", &self.subject.uid),
        ];
        for (field, value) in subject.into_iter().filter(|(_, value)| !value.is_empty()) {
            details[field] = json!(value);
        }
        if !self.causes.is_empty() {
            details["causes"] = self
                .causes
                .iter()
                .map(|cause| {
                    let fields = [
                        ("reason", &cause.reason),
                        ("message", &cause.message),
                        ("field", &cause.field),
                    ];
                    let given = fields.into_iter().filter(|(_, value)| !value.is_empty());
                    given
                        .map(|(name, value)| (name.to_owned(), json!(value)))
                        .collect::<Value>()
                })
                .collect();
        }
        if let Some(seconds) = self.retry_after {
            details["retryAfterSeconds"] = json!(seconds);
        }
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        if details.as_object().is_some_and(|details| !details.is_empty()) {
            status["details"] = details;
        }
        status
    }
}

impl fmt::Display for StatusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for StatusError {}
