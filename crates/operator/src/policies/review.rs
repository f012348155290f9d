//! AdmissionReviews that policies answer.

use policy::AdmissionAttributes;
use serde_json::Value;

use crate::admission::review::{InvalidReview, ReviewReader};

/// A request to write or delete an object, from an AdmissionReview.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PolicyReview {
    pub(super) uid: String,
    /// The `request` of the AdmissionReview.
    pub(super) request: Value,
}

/// The subject in error messages.
const SUBJECT: &str = "Kubernetes object";

impl PolicyReview {
    /// Reads the body of a request.
    ///
    /// # Errors
    ///
    /// When a field is missing or invalid.
    pub(super) fn read(body: &[u8]) -> Result<Self, InvalidReview> {
        let mut review: Value = serde_json::from_slice(body).map_err(|error| InvalidReview {
            kind: SUBJECT,
            problems: vec![format!("the body cannot be read: {error}")],
        })?;
        let mut reader = ReviewReader::new(&review);
        let uid = reader.text("request.uid");
        let request = review.get("request").unwrap_or(&Value::Null);
        if let Err(problem) = AdmissionAttributes::from_request(request, None) {
            reader.problems.push(problem.to_owned());
        }
        reader.finish(SUBJECT)?;
        let request = review.get_mut("request").map(Value::take).unwrap_or_default();
        Ok(Self { uid, request })
    }

    /// Returns the attributes of the request, with its Namespace object.
    ///
    /// # Errors
    ///
    /// None for a review that [`PolicyReview::read`] accepted.
    pub(super) fn attributes<'a>(
        &'a self,
        namespace: Option<&'a Value>,
    ) -> Result<AdmissionAttributes<'a>, InvalidReview> {
        AdmissionAttributes::from_request(&self.request, namespace).map_err(|problem| InvalidReview {
            kind: SUBJECT,
            problems: vec![problem.to_owned()],
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_problem_of_a_review_is_reported() {
        for (body, expected) in [
            ("", vec!["the body cannot be read"]),
            (
                "{}",
                vec![
                    "apiVersion: expected admission.k8s.io/v1",
                    "kind: expected AdmissionReview",
                    "request.uid:",
                    "request.operation:",
                ],
            ),
            (
                r#"{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u", "operation": "DELETE", "object": {}}}"#,
                vec!["request.oldObject:"],
            ),
        ] {
            let error = PolicyReview::read(body.as_bytes()).unwrap_err();
            assert_eq!(error.problems.len(), expected.len(), "{error}");
            for (problem, start) in error.problems.iter().zip(expected) {
                assert!(problem.starts_with(start), "{problem}");
            }
        }
        let request = json!({"uid": "u", "operation": "CREATE", "object": {"kind": "Pod"}});
        let body =
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
        let review = PolicyReview::read(body.to_string().as_bytes()).unwrap();
        assert_eq!((&*review.uid, &review.request), ("u", &request));
    }
}
