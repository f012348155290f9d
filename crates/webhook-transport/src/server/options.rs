//! How patient a server is, and how much it serves at a time.

use std::time::Duration;

/// How a server treats connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerOptions {
    /// How long a client may take for the TLS handshake, and before it to send its first byte.
    pub handshake_timeout: Duration,
    /// How long a client may take from then until the head of its first request is there.
    pub header_timeout: Option<Duration>,
    /// How long a client may take from one request until the head of the next is there. Most clients of Go, as API servers are,
    /// give up idle connections after 90 seconds; with more than that it is not in the moment of a request that this side does.
    pub idle_timeout: Option<Duration>,
    /// How many connections there are at most. For one more, somebody has to leave: of the client that has the most of them
    /// who waits, and of these who has waited longest.
    pub connections: usize,
    /// How long listeners and idle connections stay when the server is told to end. Clients that keep connections may be sending
    /// on one just then, and a POST that finds it closed is not sent again. Without any, both are closed at once.
    pub linger: Duration,
    /// How long after that connections may stay on which a request is under way.
    pub drain_timeout: Option<Duration>,
}

// === impl ServerOptions ===

impl ServerOptions {
    /// As [`Self::default`] is.
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
