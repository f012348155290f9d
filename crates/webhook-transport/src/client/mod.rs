//! The client side: calls webhooks by the name that their certificate must have, verified with the trust
//! bundle of each server.
//!
//! ```text
//! server name, trust bundle -> connection pool -> POST -> status 200 -> limited body
//! ```

mod answer_memory;
mod connector;
mod post;
mod trust;

pub use connector::{Resolve, SystemResolver};
pub use post::PostError;
pub use trust::TrustError;

use std::{fmt, sync::Arc, time::Duration};

use http_body_util::Full;
use hyper::body::Bytes;
use hyper_rustls::HttpsConnector;
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioTimer},
};
use moka::sync::Cache;

use self::{
    answer_memory::{AnswerMemory, SMALL},
    connector::Connector,
    trust::ServerTrust,
};
use crate::{LiveCertificate, ServerReference};

/// Pooled connections to webhooks. Each pool is for one server and one trust bundle, so that a call never
/// uses a connection that was verified with another trust bundle.
#[derive(Clone)]
pub struct Transport {
    options: Arc<TransportOptions>,
    memory: AnswerMemory,
    pools: Cache<PoolKey, Pool>,
}

/// Identifies a pool of connections.
#[derive(Clone, PartialEq, Eq, Hash)]
struct PoolKey {
    server: ServerReference,
    /// The client certificate in use.
    presented: Vec<u8>,
}

/// Options for calling webhooks.
#[derive(Clone)]
pub struct TransportOptions {
    /// The timeout for opening a connection, in addition to the timeout of the call.
    pub connect_timeout: Duration,
    /// How long an idle connection is kept. It must be less than the server's idle timeout, or calls are sent
    /// on connections that the server has closed: controller-runtime keeps idle connections for 90 s.
    pub idle_timeout: Duration,
    /// The largest answer, in bytes.
    pub largest_answer: usize,
    /// Bytes that all answers of more than 64 KiB may take together, in addition to one of the largest size.
    /// Further answers wait for memory until their calls time out.
    pub answer_memory: usize,
    /// Whether to verify a server without a trust bundle with the system's root certificates. If false, such
    /// a server cannot be called.
    pub system_roots: bool,
    /// The client certificate for servers that request one. When it changes, new connections are opened.
    pub client_certificate: Option<LiveCertificate>,
    /// Resolves the names of servers.
    pub resolver: Arc<dyn Resolve>,
    /// Whether to use the proxies that the environment configures (`HTTPS_PROXY`, `NO_PROXY`).
    pub proxies: bool,
    /// The `User-Agent` header.
    pub user_agent: String,
}

type Pool = Client<HttpsConnector<Connector>, Full<Bytes>>;

/// The largest answer, in bytes; the limit that Cluster API has where it limits answers.
const LARGEST_ANSWER: usize = 20 << 20;

/// Shared memory for three of the largest answers.
const ANSWER_MEMORY: usize = 3 * LARGEST_ANSWER;

/// HTTP/2 flow control window of a connection: the unread bytes that a server may send.
const CONNECTION_WINDOW: u32 = 256 << 10;

/// The maximum number of pools.
const POOLS: u64 = 4096;

/// How long an unused pool is kept.
const POOL_IDLE: Duration = Duration::from_secs(600);

impl Default for TransportOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(60),
            largest_answer: LARGEST_ANSWER,
            answer_memory: ANSWER_MEMORY,
            system_roots: false,
            client_certificate: None,
            resolver: Arc::new(SystemResolver),
            proxies: true,
            user_agent: concat!("webhook-transport/", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}

impl Transport {
    /// Creates a transport without connections.
    pub fn new(options: TransportOptions) -> Self {
        Self {
            memory: AnswerMemory::new(options.largest_answer, options.answer_memory),
            options: Arc::new(options),
            pools: Cache::builder()
                .max_capacity(POOLS)
                .time_to_idle(POOL_IDLE)
                .build(),
        }
    }

    /// Returns the options of this transport.
    pub fn options(&self) -> &TransportOptions {
        &self.options
    }

    /// Makes all later calls open new connections.
    pub fn forget_connections(&self) {
        self.pools.invalidate_all();
    }

    fn pool(&self, server: &ServerReference) -> Result<Pool, TrustError> {
        let presented = self.options.client_certificate.as_ref();
        let key = PoolKey {
            server: server.without_prefix(),
            presented: presented.map(LiveCertificate::leaf).unwrap_or_default(),
        };
        if let Some(pool) = self.pools.get(&key) {
            return Ok(pool);
        }
        let trust = ServerTrust::new(server.ca_bundle(), &self.options)?;
        let connector = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(trust.into_client_config())
            .https_only()
            .enable_all_versions()
            .wrap_connector(Connector::new(&self.options));
        let made = || {
            Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .timer(TokioTimer::new())
                .pool_idle_timeout(self.options.idle_timeout)
                // Unread bytes are not counted as memory of an answer, so the window must be small where many
                // servers send much.
                .http1_max_buf_size(SMALL)
                .http2_initial_stream_window_size(CONNECTION_WINDOW)
                .http2_initial_connection_window_size(CONNECTION_WINDOW)
                .build(connector)
        };
        // A concurrent call for the same server may have created the pool first.
        Ok(self.pools.get_with(key, made))
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Transport")
            .field("pools", &self.pools.entry_count())
            .finish_non_exhaustive()
    }
}
