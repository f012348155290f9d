//! AdmissionReviews, as the operator reads them: compiled here by itself, since the rest of the operator takes a cluster.

#[path = "../../../src/admission/review.rs"]
pub mod review;
