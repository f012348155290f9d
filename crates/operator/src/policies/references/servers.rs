//! What servers answer: asked once for all who need it, and kept for a short time.

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

/// How servers are asked that policies refer to.
#[derive(Clone)]
pub struct ReferenceOptions {
    /// Which may be asked.
    pub hosts: AllowedHosts,
    /// Certificates, PEM, by which they are trusted beside those of the system.
    pub ca: Vec<u8>,
    /// How long an answer is kept.
    pub keep: Duration,
}

/// Asks servers.
pub(super) struct ReferredServers {
    hosts: Arc<AllowedHosts>,
    client: ReferenceClient,
    tokens: ReferenceTokens,
    /// What was answered a moment ago.
    answers: Cache<Arc<HttpRequest>, Bytes>,
    /// What is being asked now.
    asked: Cache<Arc<HttpRequest>, Arc<OnceCell<Result<Bytes, String>>>>,
    /// How many more requests each server may have now.
    turns: Cache<String, Arc<Semaphore>>,
    /// How many more all of them may have.
    all_turns: Semaphore,
}

/// How many requests a server has at a time: one that is slow must leave room for others.
const TURNS: usize = 8;

/// How many requests all servers have at a time.
const ALL_TURNS: usize = 32;

/// How many bytes all answers have together that are kept.
const ANSWER_MEMORY: u64 = 16 << 20;

/// What an answer takes beside its bytes.
const OVERHEAD: usize = 512;

/// How many servers are known at a time, and for how long.
const SERVERS: (u64, Duration) = (1024, Duration::from_secs(60));

/// The headers that say how a message is sent, which is not for policies to say, and what could make an answer larger than it seems.
const UNSENDABLE: [HeaderName; 9] = [
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

// === impl ReferenceOptions ===

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

// === impl ReferredServers ===

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
            asked: Cache::builder()
                .max_capacity(servers)
                .time_to_live(LONGEST_READ * 2)
                .build(),
            turns: Cache::builder().max_capacity(servers).time_to_idle(idle).build(),
            all_turns: Semaphore::new(ALL_TURNS),
        }
    }

    pub(super) fn hosts(&self) -> &AllowedHosts {
        &self.hosts
    }

    /// What a server answers. A POST is not sent for a dry run, from which nothing may come.
    pub(super) async fn answer(&self, request: &HttpRequest, is_dry_run: bool) -> FetchedAnswer {
        if is_dry_run && request.method == HttpMethod::Post {
            return FetchedAnswer::Failed("a POST is not sent for a dry run".to_owned());
        }
        match self.shared(request).await {
            // Kept as text: that takes far less memory than what it means.
            Ok(body) => match serde_json::from_slice(&body) {
                Ok(body) => FetchedAnswer::Found(body),
                Err(_) => FetchedAnswer::Failed("the answer is not JSON".to_owned()),
            },
            Err(error) => FetchedAnswer::Failed(error),
        }
    }

    /// The answer of a moment ago, or that which somebody waits for, or a new one.
    async fn shared(&self, request: &HttpRequest) -> Result<Bytes, String> {
        if let Some(answer) = self.answers.get(request) {
            return Ok(answer);
        }
        let request = Arc::new(request.clone());
        let cell = self.asked.get_with(request.clone(), Arc::default);
        let asking = async || {
            // No longer than the first who asks may wait: others may have more time, but then ask anew.
            let answer = timeout(LONGEST_READ, self.ask(&request)).await;
            let answer = answer.unwrap_or_else(|_| Err("no answer in time".to_owned()));
            if let Ok(answer) = &answer {
                self.answers.insert(request.clone(), answer.clone());
            }
            // Whoever comes from now on finds the answer, or asks anew where there is none.
            self.asked.invalidate(&request);
            answer
        };
        cell.get_or_init(asking).await.clone()
    }

    async fn ask(&self, request: &HttpRequest) -> Result<Bytes, String> {
        self.hosts.check(&request.url)?;
        let call = call(request)?;
        let server = call.uri.authority().map(ToString::to_string).unwrap_or_default();
        let turns = self.turns.get_with(server, || Arc::new(Semaphore::new(TURNS)));
        let closed = |_| "windlass ends".to_owned();
        let _turn = turns.acquire().await.map_err(closed)?;
        let _of_all = self.all_turns.acquire().await.map_err(closed)?;
        let Some(auth) = &request.auth else {
            return self.client.send(call).await.map_err(|error| error.to_string());
        };
        let mut is_second = false;
        loop {
            let credentials = self.tokens.credentials(auth, &self.client, &self.hosts).await?;
            let mut call = call.clone();
            credentials.add(&mut call.headers)?;
            match self.client.send(call).await {
                Err(ServerCallError::Status(StatusCode::UNAUTHORIZED))
                    if !is_second && self.tokens.refuse(auth, &credentials).await =>
                {
                    is_second = true;
                }
                answer => return answer.map_err(|error| error.to_string()),
            }
        }
    }
}

fn call(request: &HttpRequest) -> Result<ServerCall, String> {
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
        if UNSENDABLE.contains(&header) {
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
