//! The AdmissionReviews of policies, as the operator parses them.

#[path = "../../../src/policies/review.rs"]
mod review;

use policy::AdmissionOperation;
use serde_json::Value;

use self::review::PolicyReview;

/// Checks that a readable review has valid attributes.
pub fn check(body: &[u8]) {
    let Ok(review) = PolicyReview::read(body) else { return };
    let whole: Value = serde_json::from_slice(body).expect("the body was parsed");
    assert_eq!(whole["request"], review.request);
    assert_eq!(whole["request"]["uid"], *review.uid);
    let attributes = review.attributes(None).expect("the body was parsed");
    assert_eq!(AdmissionOperation::from_name(attributes.operation.name()), Some(attributes.operation));
    assert!(attributes.operation == AdmissionOperation::Connect || attributes.subject().is_object());
    let _ = (attributes.name(), attributes.namespace(), attributes.kind(), attributes.is_namespace());
}
