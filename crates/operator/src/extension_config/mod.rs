//! Discovery for Cluster API's ExtensionConfigs: requests the handlers from their servers and writes them
//! into their status.
//!
//! ```text
//! ExtensionConfig, endpoints -> other manager? -> discover (TLS, by its caBundle) -> one patch of its status
//! ```

mod backoff;
mod discover;
mod other_manager;
mod reconcile;
mod run;
mod status;
mod triggers;

pub(crate) use run::run;
