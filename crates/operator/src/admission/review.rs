//! Reading and answering AdmissionReviews (`admission.k8s.io/v1`) of any object.

use serde_json::{Value, json};
use thiserror::Error;

/// All problems of an invalid AdmissionReview.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("not an AdmissionReview of a {kind}: {}", problems.join("; "))]
pub struct InvalidReview {
    /// The expected kind of the object.
    pub kind: &'static str,
    /// The problems, each with its field.
    pub problems: Vec<String>,
}

/// Reads fields of an AdmissionReview, and collects their problems.
pub(crate) struct ReviewReader<'a> {
    review: &'a Value,
    pub(crate) problems: Vec<String>,
}

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

/// Returns an AdmissionReview with this response.
pub(crate) fn answer(response: Value) -> Value {
    json!({ "apiVersion": API_VERSION, "kind": KIND, "response": response })
}

impl<'a> ReviewReader<'a> {
    /// Reads `review`, and checks its type.
    pub(crate) fn new(review: &'a Value) -> Self {
        let mut reader = Self {
            review,
            problems: Vec::new(),
        };
        reader.require("apiVersion", API_VERSION);
        reader.require("kind", KIND);
        reader
    }

    /// Checks that no problem was found.
    ///
    /// # Errors
    ///
    /// All problems. `kind` is the expected kind of the object.
    pub(crate) fn finish(self, kind: &'static str) -> Result<(), InvalidReview> {
        let problems = self.problems;
        if problems.is_empty() {
            Ok(())
        } else {
            Err(InvalidReview { kind, problems })
        }
    }

    fn field(&self, path: &str) -> Option<&'a Value> {
        self.review.pointer(&format!("/{}", path.replace('.', "/")))
    }

    /// Returns the text at `path`. A missing one is a problem, and returned as an empty text.
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
