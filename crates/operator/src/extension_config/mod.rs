//! Discovery for Cluster API's ExtensionConfigs: what their servers answer is asked of them, and written into their status.
//!
//! ```text
//! ExtensionConfig, endpoints -> elsewhere? -> discover (TLS, by its caBundle) -> one patch of its status
//! ```

mod discover;
mod elsewhere;
mod pace;
mod reconcile;
mod run;
mod status;
mod triggers;

pub(crate) use run::run;
