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
//! A revision is recorded before its first object is written. While the next one is refused, the installed one is walked
//! instead, from its record.
//!
//! Every reconciliation walks the whole way and stops at the first gate that is not open yet. It writes only what is
//! missing, so walking again costs nothing.

mod acceptance;
mod arming;
mod canary;
mod crd_upgrade;
mod deletion;
mod disarming;
mod finalizer;
mod halt;
mod install;
mod keeping;
mod loading;
mod lookup;
mod memory;
mod namespace;
mod objects;
mod ownership;
mod proof;
mod reconciler;
mod record_upkeep;
mod records;
mod removal;
mod report;
pub(super) mod rollout;
mod run;
mod standing;
mod storage;
mod triggers;
mod trust;

pub use halt::BundleDeploymentError;
pub use reconciler::Delays;
pub use run::run;
