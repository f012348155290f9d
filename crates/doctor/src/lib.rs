//! Judges what would go wrong in a cluster.
//!
//! ```text
//! versions, leases, callers and their Services, CRDs, other controllers, clocks -> findings -> Diagnosis
//! ```
//!
//! Each function judges facts that its caller has read. The caller reports what could not be read as a
//! finding of its own ([`DoctorCheck::NotLookedAt`]).
//!
//! # Examples
//!
//! ```
//! use windlass_doctor::{Diagnosis, DoctorSeverity, kubernetes_version};
//!
//! let diagnosis = Diagnosis::new([kubernetes_version("v1.29.4"), kubernetes_version("v1.36.3")]);
//! assert_eq!(diagnosis.errors, 1);
//! assert_eq!(diagnosis.findings[0].severity, DoctorSeverity::Error);
//! ```

mod admission;
mod calls;
mod check;
mod clocks;
mod cluster_risks;
mod crds;
mod deployments;
mod diagnosis;
mod finding;
mod injectors;
mod lease;
mod other_controllers;
mod trust;
mod versions;

pub use admission::intercepts_windlass;
pub use calls::{CallState, ServiceCall, answered_calls};
pub use check::{CheckGroup, DoctorCheck};
pub use clocks::{api_server_clock, node_clocks};
pub use cluster_risks::{api_service, disruption_budget, egress_policy, terminating_namespace};
pub use crds::{crd_problems, own_crd};
pub use deployments::{second_windlass, windlass_deployment};
pub use diagnosis::Diagnosis;
pub use finding::{DoctorFinding, DoctorSeverity};
pub use injectors::{other_ca_bundle_owners, two_injectors};
pub use lease::{LeaseFacts, leader};
pub use other_controllers::other_controllers;
pub use trust::caller_trust;
pub use versions::{api_not_served, kubernetes_version};
