//! AdmissionReviews as the operator parses them. They are compiled separately, since the rest of the operator
//! needs a cluster.

#[path = "../../../src/admission/review.rs"]
pub mod review;
