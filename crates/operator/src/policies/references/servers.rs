//! Answers of servers. Concurrent equal requests share one call, and answers are cached for a short time.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri,
    header::{self, ACCEPT, CONTENT_TYPE, USER_AGENT},
};
use moka::sync::Cache;
use policy::{FetchedAnswer, HttpRequest, api::HttpMethod};
use tokio::{
    sync::{OnceCell, Semaphore},
    time::timeout,
};
use windlass_cluster::{Clock, Cluster};

use super::{
    LONGEST_READ,
    allowed_hosts::AllowedHosts,
    reference_client::{ReferenceClient, ServerCall, ServerCallError},
    tokens::ReferenceTokens,
};

/// Settings for calls of servers that policies refer to.
#[derive(Clone)]
pub struct ReferenceOptions {
    /// The allowed servers.
    pub hosts: AllowedHosts,
    /// CA certificates to trust in addition to those of the system, as PEM.
    pub ca: Vec<u8>,
    /// How long an answer is cached.
    pub keep: Duration,
}

/// Calls servers that policies refer to.
pub(super) struct ReferredServers {
    hosts: Arc<AllowedHosts>,
    client: ReferenceClient,
    tokens: ReferenceTokens,
    /// Recent answers.
    answers: Cache<Arc<HttpRequest>, Bytes>,
    /// Calls in progress.
    in_progress: Cache<Arc<HttpRequest>, Arc<OnceCell<Result<Bytes, String>>>>,
    /// Limits the concurrent requests to each server.
    permits: Cache<String, Arc<Semaphore>>,
    /// Limits the concurrent requests to all servers.
    total_permits: Semaphore,
}

/// Concurrent requests to one server, so that a slow one leaves room for others.
const SERVER_PERMITS: usize = 8;

/// Concurrent requests to all servers.
const TOTAL_PERMITS: usize = 32;

/// The size limit of cached answers, in bytes.
const ANSWER_MEMORY: u64 = 16 << 20;

/// The estimated memory of a cached answer in addition to its bytes.
const OVERHEAD: usize = 512;

/// The number of servers with a limit of their own, and how long an unused limit is kept.
const SERVERS: (u64, Duration) = (1024, Duration::from_secs(60));

/// Headers that policies must not set: they control the connection, or could make an answer larger than it
/// appears.
const FORBIDDEN_HEADERS: [HeaderName; 9] = [
    header::ACCEPT_ENCODING,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::EXPECT,
    header::HOST,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

impl Default for ReferenceOptions {
    fn default() -> Self {
        Self {
            hosts: AllowedHosts::default(),
            ca: Vec::new(),
            keep: Duration::from_secs(10),
        }
    }
}

impl fmt::Debug for ReferenceOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ReferenceOptions")
            .field("hosts", &self.hosts)
            .field("keep", &self.keep)
            .finish_non_exhaustive()
    }
}

impl ReferredServers {
    pub(super) fn new(cluster: Cluster, clock: Arc<dyn Clock>, options: &ReferenceOptions) -> Self {
        let hosts = Arc::new(options.hosts.clone());
        let size = |request: &Arc<HttpRequest>, answer: &Bytes| {
            let body = request.body.as_ref().map_or(0, |body| body.to_string().len());
            let size = answer.len() + request.url.len() + body + OVERHEAD;
            u32::try_from(size).unwrap_or(u32::MAX)
        };
        let (servers, idle) = SERVERS;
        Self {
            client: ReferenceClient::new(hosts.clone(), &options.ca),
            hosts,
            tokens: ReferenceTokens::new(cluster, clock),
            answers: Cache::builder()
                .weigher(size)
                .max_capacity(ANSWER_MEMORY)
                .time_to_live(options.keep)
                .build(),
            in_progress: Cache::builder()
                .max_capacity(servers)
                .time_to_live(LONGEST_READ * 2)
                .build(),
            permits: Cache::builder().max_capacity(servers).time_to_idle(idle).build(),
            total_permits: Semaphore::new(TOTAL_PERMITS),
        }
    }

    pub(super) fn hosts(&self) -> &AllowedHosts {
        &self.hosts
    }

    /// Returns the answer of a server. A POST is not sent for a dry run, which must have no side effects.
    pub(super) async fn answer(&self, request: &HttpRequest, is_dry_run: bool) -> FetchedAnswer {
        if is_dry_run && request.method == HttpMethod::Post {
            return FetchedAnswer::Failed("a POST is not sent for a dry run".to_owned());
        }
        match self.fetch_shared(request).await {
            // The cache holds bytes, which need far less memory than parsed JSON.
            Ok(body) => match serde_json::from_slice(&body) {
                Ok(body) => FetchedAnswer::Found(body),
                Err(_) => FetchedAnswer::Failed("the answer is not JSON".to_owned()),
            },
            Err(error) => FetchedAnswer::Failed(error),
        }
    }

    /// Returns the cached answer, that of a call in progress, or that of a new call.
    async fn fetch_shared(&self, request: &HttpRequest) -> Result<Bytes, String> {
        if let Some(answer) = self.answers.get(request) {
            return Ok(answer);
        }
        let request = Arc::new(request.clone());
        let cell = self.in_progress.get_with(request.clone(), Arc::default);
        let fetching = async || {
            // Limited by the least time that a request has. A later caller with more time starts a new call.
            let answer = timeout(LONGEST_READ, self.fetch(&request)).await;
            let answer = answer.unwrap_or_else(|_| Err("no answer in time".to_owned()));
            if let Ok(answer) = &answer {
                self.answers.insert(request.clone(), answer.clone());
            }
            // Later callers find the answer in the cache, or start a new call after a failure.
            self.in_progress.invalidate(&request);
            answer
        };
        cell.get_or_init(fetching).await.clone()
    }

    async fn fetch(&self, request: &HttpRequest) -> Result<Bytes, String> {
        self.hosts.check(&request.url)?;
        let call = build_call(request)?;
        let server = call.uri.authority().map(ToString::to_string).unwrap_or_default();
        let permits = self
            .permits
            .get_with(server, || Arc::new(Semaphore::new(SERVER_PERMITS)));
        let closed = |_| "Windlass is shutting down".to_owned();
        let _permit = permits.acquire().await.map_err(closed)?;
        let _total = self.total_permits.acquire().await.map_err(closed)?;
        let Some(auth) = &request.auth else {
            return self.client.send(call).await.map_err(|error| error.to_string());
        };
        let mut is_retry = false;
        loop {
            let credentials = self.tokens.credentials(auth, &self.client, &self.hosts).await?;
            let mut call = call.clone();
            credentials.add(&mut call.headers)?;
            match self.client.send(call).await {
                Err(ServerCallError::Status(StatusCode::UNAUTHORIZED))
                    if !is_retry && self.tokens.invalidate(auth, &credentials).await =>
                {
                    is_retry = true;
                }
                answer => return answer.map_err(|error| error.to_string()),
            }
        }
    }
}

fn build_call(request: &HttpRequest) -> Result<ServerCall, String> {
    let uri: Uri = request.url.parse().map_err(|_| "it is not a URL")?;
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(
        USER_AGENT,
        HeaderValue::from_static(concat!("windlass/", env!("CARGO_PKG_VERSION"))),
    );
    let body = match (&request.method, &request.body) {
        (HttpMethod::Post, Some(body)) => {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            body.to_string().into()
        }
        _ => Bytes::new(),
    };
    for (name, value) in &request.headers {
        let invalid = || format!("header {name:?} cannot be sent");
        let header = HeaderName::try_from(name).map_err(|_| invalid())?;
        if FORBIDDEN_HEADERS.contains(&header) {
            return Err(invalid());
        }
        let mut value = HeaderValue::try_from(value).map_err(|_| invalid())?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    let method = match request.method {
        HttpMethod::Get => Method::GET,
        HttpMethod::Post => Method::POST,
    };
    Ok(ServerCall {
        method,
        uri,
        headers,
        body,
    })
}
