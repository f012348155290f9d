//! Targets that ask for the `ca.crt` of a Secret that Windlass does not issue.
//!
//! The Secrets of ServingCertificates are not looked at here: there, what a target carries decides when a CA may sign.

mod contests;
mod reconcile;
mod requests;
mod run;
mod secret;
mod secrets;
mod triggers;

pub(crate) use run::run;
