//! Injection of CA certificates that Windlass does not issue: the `ca.crt` of Secrets, and the CA of the API
//! server.
//!
//! Secrets of ServingCertificates are handled by their rotation, in which the contents of targets determine
//! when a CA may sign.

mod ca_source;
mod ca_source_bundle;
mod ca_transition;
mod injection_conflicts;
mod observed_source;
mod observed_sources;
mod reconcile;
mod requests;
mod run;
mod triggers;
mod withdrawal;

pub(crate) use run::run;
