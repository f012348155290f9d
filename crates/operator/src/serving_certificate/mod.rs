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
//! Beside it, a target that somebody else wrote is repaired at once.

mod ca_secret;
mod certificates;
mod desired;
mod endpoints;
mod execute;
mod gather;
mod history;
mod issuance;
mod reconciler;
mod repair;
mod report;
mod rollout;
mod run;
pub(super) mod secrets;
mod serving_secret;
mod targets;
#[cfg(test)]
mod tests;
mod triggers;

pub use ca_secret::WriteAuthoritiesError;
pub use certificates::{UnknownCertificate, WriteBundleError};
pub use desired::ReadCertificateError;
pub use issuance::IssueCaError;
pub use reconciler::ServingCertificateError;
pub use run::run;
pub use windlass_trust::rotation::Timing;

use reconciler::CertificateReconciler;
