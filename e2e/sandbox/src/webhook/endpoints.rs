//! Where a Service leads.

use std::net::SocketAddr;

/// Why a Service leads nowhere.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// There is no such Service.
    #[error("service {0:?} not found")]
    ServiceNotFound(String),
    /// The Service has no such port.
    #[error("no service port {port} found for service {service:?}")]
    PortNotFound {
        /// The Service's name.
        service: String,
        /// The port that was asked for.
        port: i64,
    },
    /// No endpoint of the Service is ready.
    #[error("no endpoints available for service {0:?}")]
    NoEndpoints(String),
}

/// Finds where a Service leads: a ready endpoint, another one each time where there are several.
pub trait Endpoints: Send + Sync {
    /// The address of an endpoint of `service` for its port `port`.
    ///
    /// # Errors
    ///
    /// When the Service, its port or a ready endpoint is missing.
    fn resolve(&self, namespace: &str, service: &str, port: i64) -> Result<SocketAddr, ResolveError>;
}
