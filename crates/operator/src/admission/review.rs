//! AdmissionReview (`admission.k8s.io/v1`), whatever it is about.

use serde_json::{Value, json};
use thiserror::Error;

/// Why a question cannot be answered: every problem of it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("not an AdmissionReview of a {of}: {}", problems.join("; "))]
pub struct InvalidReview {
    /// The kind that it should be about.
    pub of: &'static str,
    /// Each with the field that it is about.
    pub problems: Vec<String>,
}

/// Reads fields of an AdmissionReview, and notes what is wrong with them.
pub(crate) struct ReviewReader<'a> {
    review: &'a Value,
    pub(crate) problems: Vec<String>,
}

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

/// An AdmissionReview with this response.
pub(crate) fn answer(response: Value) -> Value {
    json!({ "apiVersion": API_VERSION, "kind": KIND, "response": response })
}

// === impl ReviewReader ===

impl<'a> ReviewReader<'a> {
    /// Of a review, which must be one.
    pub(crate) fn new(review: &'a Value) -> Self {
        let mut reader = Self {
            review,
            problems: Vec::new(),
        };
        reader.require("apiVersion", API_VERSION);
        reader.require("kind", KIND);
        reader
    }

    /// That nothing was wrong.
    ///
    /// # Errors
    ///
    /// With everything that was, of a review that should be about this.
    pub(crate) fn finish(self, of: &'static str) -> Result<(), InvalidReview> {
        let problems = self.problems;
        if problems.is_empty() {
            Ok(())
        } else {
            Err(InvalidReview { of, problems })
        }
    }

    fn field(&self, path: &str) -> Option<&'a Value> {
        self.review.pointer(&format!("/{}", path.replace('.', "/")))
    }

    /// The text at `path`; empty, and a problem, where there is none.
    pub(crate) fn text(&mut self, path: &str) -> String {
        match self.field(path).and_then(Value::as_str) {
            Some(text) if !text.is_empty() => text.to_owned(),
            _ => {
                self.problems.push(format!("{path}: expected a non-empty string"));
                String::new()
            }
        }
    }

    pub(crate) fn require(&mut self, path: &str, expected: &str) {
        let found = self.field(path);
        if found.and_then(Value::as_str) != Some(expected) {
            let found = found.map_or_else(|| "nothing".to_owned(), ToString::to_string);
            self.problems
                .push(format!("{path}: expected {expected}, got {found}"));
        }
    }

    pub(crate) fn object(&mut self, path: &str) -> Value {
        let found = self.field(path).filter(|value| value.is_object());
        if found.is_none() {
            self.problems.push(format!("{path}: expected an object"));
        }
        found.cloned().unwrap_or_default()
    }
}
