//! Listening on an address.

use std::{io, net::SocketAddr};

use thiserror::Error;
use tokio::net::{TcpListener, TcpSocket};

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

/// How many connections wait to be accepted, as many as the system has by default. With fewer, those who connect all at once
/// find no place, and try again only seconds later.
const BACKLOG: u32 = 4096;

/// A listener on `address`.
///
/// # Errors
///
/// When the address is not of this machine, or in use.
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
