//! Includes the operator's parser of AdmissionReviews as source, since the rest of the operator needs a
//! cluster.

#[path = "../../../src/admission/review.rs"]
pub mod review;
