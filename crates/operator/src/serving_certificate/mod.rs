//! Controller of ServingCertificates: gather, plan, execute, report.
//!
//! ```text
//! CA Secret, serving Secret, targets, endpoints, Deployment -> Observation -> rotation::plan -> steps
//!                              ^                                                                  |
//!                              `---- after each write of a Secret, and whenever something changes '
//! ```
//!
//! Reconciliations do not depend on remembered state. Writes of Secrets require the version that was read,
//! and injections require the observed content, so that an outdated reconciliation writes nothing.
//!
//! In addition, a target that another client has overwritten is repaired immediately, even by a standby
//! process.

mod clock_condition;
mod conflict;
mod desired;
mod endpoints;
mod error;
mod execute;
mod gather;
mod history;
mod obstacle;
mod obstacle_backoff;
mod other_installs;
mod probe_schedule;
mod reconciler;
mod repair;
mod report;
mod rotation_position;
mod rotation_traces;
mod run;
mod secrets;
mod service_pods;
mod targets;
#[cfg(test)]
mod tests;
mod triggers;
mod workloads;

pub use error::{ReadCertificateError, ServingCertificateError};
pub use run::run;
pub use windlass_trust::rotation::Timing;
