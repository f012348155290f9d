//! Listening on an address.

use std::{io, net::SocketAddr};

use thiserror::Error;
use tokio::net::TcpListener;

/// An address cannot be served.
#[derive(Debug, Error)]
pub enum ServeError {
    /// It cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// TLS cannot be set up.
    #[error("cannot set up TLS")]
    Tls(#[from] rustls::Error),
    /// The server ended.
    #[error("cannot accept connections")]
    Accept(#[from] io::Error),
}

/// A listener on `address`.
///
/// # Errors
///
/// When the address is not of this machine, or in use.
pub(crate) async fn listen(address: SocketAddr) -> Result<TcpListener, ServeError> {
    TcpListener::bind(address)
        .await
        .map_err(|source| ServeError::Listen { address, source })
}
