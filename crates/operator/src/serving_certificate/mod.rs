//! Keeps serving certificates: look, plan, do, report.
//!
//! ```text
//! CA Secret, serving Secret, targets, endpoints, Deployment -> Observation -> rotation::plan -> steps
//!                              ^                                                                  |
//!                              `---- after each write of a Secret, and whenever something changes '
//! ```
//!
//! Nothing that matters is remembered from one reconciliation to the next. Writes of Secrets replace what was read, and
//! injections are guarded by what was seen: a reconciliation that comes too late does nothing.
//!
//! Beside it, a target that somebody else wrote is repaired at once, also by a process that stands by.

mod conflict;
mod desired;
mod endpoints;
mod error;
mod execute;
mod gather;
mod history;
mod neighbours;
mod obstacle;
mod obstacles;
mod reconciler;
mod repair;
mod report;
mod rotation_position;
mod rotation_traces;
mod run;
mod secrets;
mod service_pods;
mod synchronized;
mod targets;
#[cfg(test)]
mod tests;
mod triggers;
mod turns;
mod workloads;

pub use error::{ReadCertificateError, ServingCertificateError};
pub use run::run;
pub use windlass_trust::rotation::Timing;
