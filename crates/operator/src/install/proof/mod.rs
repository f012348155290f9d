//! What is proven of webhooks before they are armed, without IO: what an admission webhook is asked, and which answers the
//! API server takes.

mod admission_request;
mod admission_review;
mod admission_webhook;
mod builtin;

pub use admission_request::{AdmissionRequest, Provenance, RequestOperation, RequestTarget, targets};
pub use admission_review::{AdmissionProblem, judge, review};
pub use admission_webhook::{AdmissionType, AdmissionWebhook, admission_webhooks};
