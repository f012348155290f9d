//! Errors as the API shows them: `meta/v1 Status`.

use std::fmt;

use serde_json::{Value, json};

/// One entry of `details.causes`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Machine-readable, for example `FieldValueInvalid`.
    pub reason: String,
    /// Human-readable text.
    pub message: String,
    /// The field's path, for example `spec.ports[0].port`; empty when there is none.
    pub field: String,
}

/// A failed request: what becomes a `Status` object with an HTTP status code.
#[derive(Clone, Debug, PartialEq)]
pub struct StatusError {
    /// The HTTP status code.
    pub code: u16,
    /// `reason`, for example `NotFound`; may be empty, as the real server's is for webhook failures.
    pub reason: String,
    /// `message`.
    pub message: String,
    /// `details.name`, `.group` and `.kind`, without those that are empty.
    pub subject: Subject,
    /// `details.causes`.
    pub causes: Vec<Cause>,
    /// `details.retryAfterSeconds` and the `Retry-After` header.
    pub retry_after: Option<u32>,
}

/// What a [`StatusError`] is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The object's name.
    pub name: String,
    /// Its API group.
    pub group: String,
    /// Its kind, or its resource: the real server uses either.
    pub kind: String,
    /// Its uid.
    pub uid: String,
}

// === impl StatusError ===

impl StatusError {
    /// An error without a subject.
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

    /// 400 BadRequest.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 500 InternalError.
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

    /// The object's `Status` form.
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
