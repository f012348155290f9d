//! Installs bundles: load, plan, apply phase by phase, prove, arm, keep, remove.
//!
//! ```text
//! source -> Bundle -> Plan -> canary (upgrades of what converts) -> what is dropped is disarmed
//!                                                                              |
//!                Deployments <- CRDs <- identity, configuration, services, certificates
//!                     |
//!           every endpoint of the new revision -> proof (handshakes, conversions) -> armed
//!                                                                                      |
//!                  what is dropped is removed <- stored objects rewritten, a page at a time
//! ```
//!
//! Every reconciliation walks the whole way and stops at the first gate that is not open yet. It writes only what is
//! missing, so walking again costs nothing.

mod absences;
mod acceptance;
mod arming;
mod canary;
mod crd_upgrade;
mod deletion;
mod disarming;
mod finalizer;
mod halt;
mod install;
mod loading;
mod lookup;
mod memory;
mod namespace;
mod objects;
mod ownership;
mod proof;
mod reconciler;
mod removal;
mod report;
mod requirements;
pub(super) mod rollout;
mod run;
mod storage;
mod triggers;
mod trust;

pub use halt::BundleDeploymentError;
pub use reconciler::Delays;
pub use run::run;
