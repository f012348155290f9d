//! Installs bundles: load, plan, apply phase by phase, prove, arm, keep, remove.
//!
//! ```text
//! source -> Bundle -> Plan -> canary -> identity, configuration, services, certificates, CRDs
//!                                                                                  |
//!        proof (handshakes, conversions) <- every new pod is ready <- Deployments: new pods beside the old ones
//!                     |
//!        armed: each webhook swings to the new pods by one write -> what is dropped is disarmed -> API servers observe it
//!                                                                                                          |
//!        what is dropped is removed <- stored objects rewritten, a page at a time <- old pods end, what they lived on changes
//! ```
//!
//! A revision is recorded before its first object is written. While the next one is refused, the installed one is walked
//! instead, from its record.
//!
//! Every reconciliation walks the whole way and stops at the first gate that is not open yet. It writes only what is
//! missing, so walking again costs nothing.

mod absences;
mod acceptance;
mod arming;
mod canary;
mod carrying_through;
mod crd_upgrade;
mod deletion;
mod disarming;
mod dry_run;
mod emptying;
mod field_managers;
mod finalizer;
mod following;
mod freezing;
mod halt;
mod health;
mod install;
mod install_traces;
mod keeping;
mod keeping_beside;
mod leaving;
mod loading;
mod lookup;
mod memory;
mod namespace;
mod objects;
mod operator_condition;
mod ordering;
mod other_callers;
mod overriding;
mod ownership;
mod pause;
mod polling;
mod proof;
mod pulling;
mod reconciler;
mod record_config_maps;
mod record_upkeep;
mod records;
mod removal;
mod replacing;
mod report;
mod requirements;
mod restoring;
mod revisions;
mod rolling_out;
mod rollout;
pub(super) mod rollout_status;
mod run;
mod standing;
mod storage;
mod tenancy;
#[cfg(test)]
mod tests;
mod traffic;
mod triggers;
mod trust;
mod unblocking;
mod unfinished;
mod unlisted;

pub use halt::BundleDeploymentError;
pub use loading::bundle_digest;
pub use pulling::{CatalogImageError, CatalogInImage, LARGEST_CATALOG, image_files, read_catalog};
pub use reconciler::Delays;
pub use rollout_status::RolloutStatus;
pub use run::run;
pub use tenancy::held_rights;
