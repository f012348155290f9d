//! ConversionReview (`apiextensions.k8s.io`): the request to a conversion webhook, and validation of its
//! response.

use serde_json::{Value, json};
use thiserror::Error;
use windlass_object::object;

/// One request to a conversion webhook.
#[derive(Clone, Debug, PartialEq)]
pub struct ConversionReview {
    version: String,
    uid: String,
    desired_api_version: String,
    objects: Vec<Value>,
}

/// Why the API server would reject a response.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the error message explains each field")]
pub enum ConversionProblem {
    /// Not a ConversionReview, or one of another version.
    #[error("expected a ConversionReview of {expected}, got {got}")]
    WrongReview { expected: String, got: String },
    /// The response is missing.
    #[error("the ConversionReview has no response")]
    NoResponse,
    /// The response belongs to another request.
    #[error("expected response.uid={expected:?}, got {got:?}")]
    WrongUid { expected: String, got: String },
    /// The webhook reports a failure.
    #[error("the webhook failed to convert to {desired}: {message}")]
    Failed { desired: String, message: String },
    /// The number of objects differs.
    #[error("the webhook returned {got} objects, expected {expected}")]
    WrongCount { expected: usize, got: usize },
    /// A field changed that a conversion must keep, or the version is not the requested one.
    #[error("the webhook returned an object whose {field} is {got}, expected {expected}")]
    WrongObject {
        field: &'static str,
        expected: String,
        got: String,
    },
}

/// Fields of an object that a conversion must not change.
const KEPT: [(&str, &str); 4] = [
    ("kind", "/kind"),
    ("metadata.name", "/metadata/name"),
    ("metadata.namespace", "/metadata/namespace"),
    ("metadata.uid", "/metadata/uid"),
];

impl ConversionReview {
    /// Creates a request in review version `version` (`v1` or `v1beta1`) to convert `objects` to
    /// `desired_api_version`.
    pub fn new(
        version: impl Into<String>,
        uid: impl Into<String>,
        desired_api_version: impl Into<String>,
        objects: Vec<Value>,
    ) -> Self {
        Self {
            version: version.into(),
            uid: uid.into(),
            desired_api_version: desired_api_version.into(),
            objects,
        }
    }

    /// Returns the request body.
    pub fn request(&self) -> Value {
        json!({
            "apiVersion": self.api_version(),
            "kind": "ConversionReview",
            "request": {
                "uid": self.uid,
                "desiredAPIVersion": self.desired_api_version,
                "objects": self.objects,
            }
        })
    }

    /// Returns the converted objects of a response.
    ///
    /// # Errors
    ///
    /// If the API server would reject the response, by the rules of its `webhook_converter.go`.
    pub fn parse_response(&self, answer: &Value) -> Result<Vec<Value>, ConversionProblem> {
        let text = |pointer| object::text(answer, pointer).unwrap_or_default().to_owned();
        let got = format!("{} {}", text("/apiVersion"), text("/kind"));
        if got != format!("{} ConversionReview", self.api_version()) {
            return Err(ConversionProblem::WrongReview {
                expected: self.api_version(),
                got,
            });
        }
        if answer.get("response").is_none_or(Value::is_null) {
            return Err(ConversionProblem::NoResponse);
        }
        if text("/response/uid") != self.uid {
            return Err(ConversionProblem::WrongUid {
                expected: self.uid.clone(),
                got: text("/response/uid"),
            });
        }
        if text("/response/result/status") != "Success" {
            let message = match text("/response/result/message") {
                message if message.is_empty() => {
                    format!(
                        "response.result.status is {:?}, not \"Success\"",
                        text("/response/result/status")
                    )
                }
                message => message,
            };
            return Err(ConversionProblem::Failed {
                desired: self.desired_api_version.clone(),
                message,
            });
        }
        let converted = object::items(answer, "/response/convertedObjects");
        if converted.len() != self.objects.len() {
            return Err(ConversionProblem::WrongCount {
                expected: self.objects.len(),
                got: converted.len(),
            });
        }
        for (sent, got) in self.objects.iter().zip(converted) {
            self.compare(sent, got)?;
        }
        Ok(converted.to_vec())
    }

    fn compare(&self, sent: &Value, got: &Value) -> Result<(), ConversionProblem> {
        let wrong = |field, expected: Option<&str>, got: Option<&str>| ConversionProblem::WrongObject {
            field,
            expected: format!("{:?}", expected.unwrap_or_default()),
            got: format!("{:?}", got.unwrap_or_default()),
        };
        let api_version = object::text(got, "/apiVersion");
        if api_version != Some(&self.desired_api_version) {
            return Err(wrong("apiVersion", Some(&self.desired_api_version), api_version));
        }
        for (field, pointer) in KEPT {
            let (expected, got) = (object::text(sent, pointer), object::text(got, pointer));
            if expected != got {
                return Err(wrong(field, expected, got));
            }
        }
        Ok(())
    }

    fn api_version(&self) -> String {
        format!("apiextensions.k8s.io/{}", self.version)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn review() -> ConversionReview {
        let object = json!({
            "apiVersion": "example.com/v1beta1", "kind": "Widget",
            "metadata": {"name": "a", "namespace": "n", "uid": "u"}, "spec": {}
        });
        ConversionReview::new("v1", "1", "example.com/v1", vec![object])
    }

    fn answer() -> Value {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
            "response": {
                "uid": "1", "result": {"status": "Success"},
                "convertedObjects": [{
                    "apiVersion": "example.com/v1", "kind": "Widget",
                    "metadata": {"name": "a", "namespace": "n", "uid": "u"}, "spec": {"size": 1}
                }]
            }
        })
    }

    #[test]
    fn a_valid_response_returns_its_objects() {
        assert_eq!(
            review().parse_response(&answer()).unwrap()[0]["spec"],
            json!({"size": 1})
        );
    }

    #[test]
    fn responses_rejected_by_the_api_server_are_rejected() {
        for (pointer, value, message) in [
            (
                "/apiVersion",
                json!("apiextensions.k8s.io/v1beta1"),
                "expected a ConversionReview",
            ),
            ("/response", json!(null), "no response"),
            ("/response/uid", json!("2"), "expected response.uid"),
            (
                "/response/result",
                json!({"status": "Failed", "message": "no such version"}),
                "no such version",
            ),
            ("/response/result", json!({}), "not \"Success\""),
            (
                "/response/convertedObjects",
                json!([]),
                "returned 0 objects, expected 1",
            ),
            (
                "/response/convertedObjects/0/apiVersion",
                json!("example.com/v1beta1"),
                "apiVersion",
            ),
            ("/response/convertedObjects/0/kind", json!("Gadget"), "kind"),
            (
                "/response/convertedObjects/0/metadata/name",
                json!("b"),
                "metadata.name",
            ),
            (
                "/response/convertedObjects/0/metadata/uid",
                json!(null),
                "metadata.uid",
            ),
        ] {
            let mut answer = answer();
            *answer.pointer_mut(pointer).unwrap() = value;
            let problem = review().parse_response(&answer).unwrap_err().to_string();
            assert!(problem.contains(message), "{pointer}: {problem}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_responses_never_panic(text in "\\PC{0,200}") {
            let answer = serde_json::from_str(&text).unwrap_or(Value::String(text));
            prop_assert!(review().parse_response(&answer).is_err());
        }
    }
}
