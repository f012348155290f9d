//! Resolves a Service to an address.

use std::net::SocketAddr;

/// Why a Service cannot be resolved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// The Service does not exist.
    #[error("service {0:?} not found")]
    ServiceNotFound(String),
    /// The Service has no such port.
    #[error("no service port {port} found for service {service:?}")]
    PortNotFound {
        /// The Service's name.
        service: String,
        /// The requested port.
        port: i64,
    },
    /// No endpoint of the Service is ready.
    #[error("no endpoints available for service {0:?}")]
    NoEndpoints(String),
}

/// Resolves a Service to a ready endpoint, alternating between several.
pub trait Endpoints: Send + Sync {
    /// Returns the address of an endpoint of `service` for its port `port`.
    ///
    /// # Errors
    ///
    /// When the Service, its port or a ready endpoint is missing.
    fn resolve(&self, namespace: &str, service: &str, port: i64) -> Result<SocketAddr, ResolveError>;
}
