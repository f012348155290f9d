//! Listens on an address.

use std::{io, net::SocketAddr};

use thiserror::Error;
use tokio::net::{TcpListener, TcpSocket};

/// Why an address cannot be served.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the message explains each field")]
pub enum ServeError {
    /// The socket cannot be opened.
    #[error("cannot listen on {address}")]
    Listen {
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// TLS cannot be set up.
    #[error("cannot set up TLS")]
    Tls(#[from] rustls::Error),
    /// The server stopped.
    #[error("cannot accept connections")]
    Accept(#[from] io::Error),
}

/// The backlog of the socket: the default of the system. With a shorter one, clients that connect at the same
/// time are dropped, and retry only after seconds.
const BACKLOG: u32 = 4096;

/// Returns a listener on `address`.
///
/// # Errors
///
/// When the address does not belong to this machine, or is in use.
pub(crate) fn listen(address: SocketAddr) -> Result<TcpListener, ServeError> {
    let listener = || {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4(),
            SocketAddr::V6(_) => TcpSocket::new_v6(),
        }?;
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    };
    listener().map_err(|source| ServeError::Listen { address, source })
}
