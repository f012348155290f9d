//! Targets that ask for CA certificates that Windlass does not issue: the `ca.crt` of Secrets, the CA of the API server.
//!
//! The Secrets of ServingCertificates are not looked at here: there, what a target carries decides when a CA may sign.

mod contests;
mod given;
mod handover;
mod keeper;
mod observed_source;
mod observed_sources;
mod reconcile;
mod requests;
mod run;
mod triggers;
mod withdrawal;

pub(crate) use run::run;
