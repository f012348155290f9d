//! What is proven of webhooks before they are armed, without IO: what an admission webhook is asked, and which answers the
//! API server takes; what the API server is asked, and what its answers mean.

mod admission_request;
mod admission_review;
mod admission_webhook;
mod builtin;
mod seat_answer;
mod seat_probe;
mod seat_tally;

pub use admission_request::{AdmissionRequest, Provenance, RequestOperation, RequestTarget, targets};
pub use admission_review::{AdmissionProblem, judge, review};
pub use admission_webhook::{AdmissionType, AdmissionWebhook, admission_webhooks, unasked};
pub use seat_answer::{Obstacle, SeatAnswer};
pub use seat_probe::{ProbePart, SeatProbe};
pub use seat_tally::{SeatFinding, SeatTally};
