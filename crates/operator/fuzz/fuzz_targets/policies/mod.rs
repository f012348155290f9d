//! Questions to policies, as the operator reads them.

#[path = "../../../src/policies/review.rs"]
mod review;

use policy::AdmissionOperation;
use serde_json::Value;

use self::review::PolicyReview;

/// What can be read says what is asked about.
pub fn check(body: &[u8]) {
    let Ok(review) = PolicyReview::read(body) else { return };
    let whole: Value = serde_json::from_slice(body).expect("it was read");
    assert_eq!(whole["request"], review.request);
    assert_eq!(whole["request"]["uid"], *review.uid);
    let attributes = review.attributes(None).expect("it was read");
    assert_eq!(AdmissionOperation::from_name(attributes.operation.name()), Some(attributes.operation));
    assert!(attributes.operation == AdmissionOperation::Connect || attributes.subject().is_object());
    let _ = (attributes.name(), attributes.namespace(), attributes.kind(), attributes.is_namespace());
}
