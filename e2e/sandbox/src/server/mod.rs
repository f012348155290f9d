//! The HTTP server: TLS, authentication, authorization, routing, discovery, and the verbs.

mod api_server;
mod authentication;
mod authorization;
mod bootstrap;
mod call;
mod cells;
mod change;
mod checks;
mod columns;
mod custom;
mod delete;
mod discovery;
mod endpoints;
mod escalation;
mod faults;
pub(crate) mod front;
mod handler;
mod hooks;
mod kinds;
mod metadata;
mod object_errors;
mod openapi;
mod read;
mod reviews;
mod selectors;
mod service_accounts;
mod services;
mod subresources;
mod table;
mod watch;
mod write;

pub use api_server::{ApiServer, AuditEvent};
pub use authentication::User;
pub use call::{Call, Reply};
pub(crate) use custom::{condition, set_condition};
pub(crate) use endpoints::SERVICE_NAME;
pub use faults::{Fault, Faults};
pub use kinds::{Kinds, ServedResource};
pub(crate) use metadata::now;

/// The version that the sandbox reports.
pub(crate) const VERSION: &str = "v1.36.0-windlass-sandbox";
