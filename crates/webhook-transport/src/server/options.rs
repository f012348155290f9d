//! Limits and timeouts of a server.

use std::time::Duration;

/// Limits and timeouts of a server's connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerOptions {
    /// How long a client may take to send its first byte, and then for the TLS handshake.
    pub handshake_timeout: Duration,
    /// How long a client may take after the TLS handshake to send the head of its first request.
    pub header_timeout: Option<Duration>,
    /// How long a client may take from one request to the head of the next. Most Go clients, including API
    /// servers, close idle connections after 90 seconds; a longer timeout avoids closing a connection at the
    /// moment of a request.
    pub idle_timeout: Option<Duration>,
    /// The maximum number of open connections. A further one evicts another: of the client with the most
    /// connections, the one that has been idle longest.
    pub connections: usize,
    /// How long listeners and idle connections stay open after shutdown starts. A client may be sending a
    /// request on a kept connection at that moment, and does not resend a POST if the connection is closed.
    /// If `None`, both are closed immediately.
    pub linger: Duration,
    /// How long connections with an active request may stay open after that.
    pub drain_timeout: Option<Duration>,
}

impl ServerOptions {
    /// The values of [`Self::default`].
    pub const DEFAULT: Self = Self {
        handshake_timeout: Duration::from_secs(10),
        header_timeout: Some(Duration::from_secs(10)),
        idle_timeout: Some(Duration::from_secs(120)),
        connections: 256,
        linger: Duration::from_secs(5),
        drain_timeout: Some(Duration::from_secs(30)),
    };
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self::DEFAULT
    }
}
