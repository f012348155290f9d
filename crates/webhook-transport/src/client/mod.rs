//! Calling webhooks: by the name that a certificate must have, under the trust bundle of who is called.
//!
//! ```text
//! server name, trust bundle -> pool of connections -> POST -> status 200 -> at most so many bytes
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

/// Connections to webhooks, which are used again: each pool is for one server and one trust bundle, so that no call ever goes over
/// a connection that was judged by another's.
#[derive(Clone)]
pub struct Transport {
    options: Arc<TransportOptions>,
    memory: AnswerMemory,
    pools: Cache<PoolKey, Pool>,
}

/// Whose connections are in a pool.
#[derive(Clone, PartialEq, Eq, Hash)]
struct PoolKey {
    server: ServerReference,
    /// What the client has presented.
    presented: Vec<u8>,
}

/// How webhooks are called.
#[derive(Clone)]
pub struct TransportOptions {
    /// How long a connection may take to be made, beside what the call has.
    pub connect_timeout: Duration,
    /// How long a connection that nobody uses is kept. Less than what servers keep it, or calls are sent into one that is closed:
    /// controller-runtime's keep theirs for 90 s.
    pub idle_timeout: Duration,
    /// The most bytes of an answer.
    pub largest_answer: usize,
    /// The most bytes that all answers of more than 64 KiB have together, beside one of the largest: the others wait until those are
    /// dropped, as long as their calls have time.
    pub answer_memory: usize,
    /// Whether a server without a trust bundle is trusted as the system trusts it; it is not trusted else.
    pub system_roots: bool,
    /// What clients present where a server asks for it. When it changes, connections are made anew.
    pub client_certificate: Option<LiveCertificate>,
    /// Where a server is.
    pub resolver: Arc<dyn Resolve>,
    /// Whether proxies of the environment are used (`HTTPS_PROXY`, `NO_PROXY`).
    pub proxies: bool,
    /// How clients call themselves.
    pub user_agent: String,
}

type Pool = Client<HttpsConnector<Connector>, Full<Bytes>>;

/// The most bytes of an answer, as Cluster API has it for those that it limits.
const LARGEST_ANSWER: usize = 20 << 20;

/// Three of the largest answers, and one beside them.
const ANSWER_MEMORY: usize = 3 * LARGEST_ANSWER;

/// How much of what a server sends waits unread for a connection.
const CONNECTION_WINDOW: u32 = 256 << 10;

/// The most pools.
const POOLS: u64 = 4096;

/// How long a pool is kept that nobody uses.
const POOL_IDLE: Duration = Duration::from_secs(600);

// === impl TransportOptions ===

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

// === impl Transport ===

impl Transport {
    /// A transport without any connection.
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

    /// The options that it was made with.
    pub fn options(&self) -> &TransportOptions {
        &self.options
    }

    /// Has connections made anew from now on.
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
                // What waits unread is nobody's yet: it must stay small where many servers send much.
                .http1_max_buf_size(SMALL)
                .http2_initial_stream_window_size(CONNECTION_WINDOW)
                .http2_initial_connection_window_size(CONNECTION_WINDOW)
                .build(connector)
        };
        // Whoever comes second for the same server has the first's.
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
