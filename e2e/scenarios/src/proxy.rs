//! A proxy between the operator and the API server. It counts requests and failures, can cut the operator off
//! at any write, and can delay answers to reads.
//!
//! It works with any API server: a plain HTTP proxy on loopback that forwards with the operator's
//! credentials.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use anyhow::Context;
use axum::{
    Router,
    extract::{Request, State},
    http::{Method, StatusCode, Uri},
    response::{IntoResponse, Response},
};
use http_body_util::BodyExt;
use kube::{Client, client::Body};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::{
    net::TcpListener,
    sync::{Notify, watch},
    task::JoinHandle,
};

use crate::{audit::Right, steps};

/// When the proxy cuts the operator off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Before the write reaches the API server.
    Before,
    /// After the write is executed, before its answer returns.
    After,
}

/// A running proxy.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    writes: AtomicU64,
    cut: Mutex<Option<(u64, Cut)>>,
    /// The write, as in the log, before which the operator is cut off.
    cut_before: Mutex<Option<String>>,
    closed: Notify,
    /// The number of the write after which answers to reads of Secrets are delayed.
    hold: watch::Sender<Option<u64>>,
    held: Notify,
    log: Mutex<Vec<String>>,
    rivals: Mutex<Vec<Rival>>,
    requests: Mutex<BTreeMap<Right, u64>>,
    failures: Mutex<BTreeMap<FailedRequest, u64>>,
}

/// A request that was answered with an error.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FailedRequest {
    /// The right that the request needs.
    pub right: Right,
    /// The HTTP status code.
    pub code: u16,
}

/// A write of another client, executed just before one of the operator's.
#[derive(Clone)]
struct Rival {
    client: Client,
    path: String,
    patch: Value,
}

#[derive(Clone)]
struct Upstream {
    client: Client,
    shared: Arc<Shared>,
}

impl Proxy {
    /// Opens a proxy that forwards with the operator's `client`.
    ///
    /// # Errors
    ///
    /// Fails if no port is free.
    pub async fn open(client: Client) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .context("listening for the proxy")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            writes: AtomicU64::new(0),
            cut: Mutex::new(None),
            cut_before: Mutex::new(None),
            closed: Notify::new(),
            hold: watch::Sender::new(None),
            held: Notify::new(),
            log: Mutex::new(Vec::new()),
            rivals: Mutex::new(Vec::new()),
            requests: Mutex::new(BTreeMap::new()),
            failures: Mutex::new(BTreeMap::new()),
        });
        let router = Router::new().fallback(forward).with_state(Upstream {
            client,
            shared: shared.clone(),
        });
        let server = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                tracing::error!(%error, "The proxy ended");
            }
        });
        Ok(Self {
            address,
            shared,
            server,
        })
    }

    /// A kubeconfig that uses the proxy.
    pub fn kubeconfig(&self) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: proxy\n\
             clusters: [{{name: proxy, cluster: {{server: \"http://{}\"}}}}]\n\
             contexts: [{{name: proxy, context: {{cluster: proxy, user: proxy}}}}]\n\
             users: [{{name: proxy, user: {{}}}}]\n",
            self.address
        )
    }

    /// The number of forwarded writes.
    pub fn writes(&self) -> u64 {
        self.shared.writes.load(Ordering::SeqCst)
    }

    /// The forwarded writes, as `VERB path`.
    pub fn log(&self) -> Vec<String> {
        self.shared.log.lock().clone()
    }

    /// The number of forwarded requests by the right that they need.
    pub fn requests(&self) -> BTreeMap<Right, u64> {
        self.shared.requests.lock().clone()
    }

    /// The number of requests that were answered with an error, by request.
    pub fn failures(&self) -> BTreeMap<FailedRequest, u64> {
        self.shared.failures.lock().clone()
    }

    /// Cuts the operator off at the `number`th write from now, counted from 1, until the proxy is dropped.
    /// [`Proxy::closed`] waits for it.
    pub fn cut_at(&self, number: u64, cut: Cut) {
        *self.shared.cut.lock() = Some((self.writes() + number, cut));
    }

    /// Cuts the operator off before the first write that [`Proxy::log`] shows as `write`, until the proxy is
    /// dropped. [`Proxy::closed`] waits for it.
    pub fn cut_before(&self, write: &str) {
        *self.shared.cut_before.lock() = Some(write.to_owned());
    }

    /// Patches the object at `path` as `client` when the operator's next write to it arrives at the proxy,
    /// and before it is forwarded: the operator's observation is then outdated.
    pub fn overtake(&self, client: &Client, path: &str, patch: Value) {
        self.shared.rivals.lock().push(Rival {
            client: client.clone(),
            path: path.to_owned(),
            patch,
        });
    }

    /// Whether all writes of [`Proxy::overtake`] were executed.
    pub fn has_overtaken(&self) -> bool {
        self.shared.rivals.lock().is_empty()
    }

    /// Delays the answers to reads of Secrets from the `number`th write from now on, until
    /// [`Proxy::release`]. [`Proxy::held`] waits until the operator is about to decide on outdated data.
    pub fn hold_reads_after(&self, number: u64) {
        self.shared.hold.send_replace(Some(self.writes() + number));
    }

    /// Waits until an answer is delayed.
    pub async fn held(&self) {
        self.shared.held.notified().await;
    }

    /// Sends the delayed answers, and stops delaying.
    pub fn release(&self) {
        self.shared.hold.send_replace(None);
    }

    /// Waits until the proxy has cut the operator off.
    pub async fn closed(&self) {
        self.shared.closed.notified().await;
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl std::fmt::Display for FailedRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (HTTP {})", self.right, self.code)
    }
}

impl Shared {
    fn next_rival(&self, path: &str) -> Option<Rival> {
        let mut rivals = self.rivals.lock();
        let next = rivals.iter().position(|rival| rival.path == path)?;
        Some(rivals.remove(next))
    }
}

impl std::fmt::Debug for Rival {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.path, self.patch)
    }
}

/// Whether a request changes state. Events, leases and dry runs do not.
fn is_write(method: &Method, uri: &Uri) -> bool {
    let path = uri.path();
    let is_dry_run = uri.query().is_some_and(|query| query.contains("dryRun=All"));
    let changes = matches!(
        *method,
        Method::POST | Method::PUT | Method::PATCH | Method::DELETE
    );
    changes
        && !is_dry_run
        && !path.contains("/events")
        && !path.contains("/leases")
        && !path.contains("reviews")
}

async fn forward(State(upstream): State<Upstream>, request: Request) -> Response {
    let shared = upstream.shared.clone();
    let right = Right::needed(request.method(), request.uri());
    *shared.requests.lock().entry(right.clone()).or_default() += 1;
    let response = answer(&upstream, request).await;
    let code = response.status().as_u16();
    if code >= 400 {
        let failed = FailedRequest { right, code };
        *shared.failures.lock().entry(failed).or_default() += 1;
    }
    response
}

async fn answer(upstream: &Upstream, request: Request) -> Response {
    let shared = &upstream.shared;
    let write = is_write(request.method(), request.uri());
    let number = if write {
        shared.writes.fetch_add(1, Ordering::SeqCst) + 1
    } else {
        0
    };
    let line = format!("{} {}", request.method(), request.uri().path());
    if write && shared.cut_before.lock().as_ref() == Some(&line) {
        shared.cut.lock().get_or_insert((number, Cut::Before));
    }
    let cut = *shared.cut.lock();
    let reached = |at: u64| {
        if write {
            number >= at
        } else {
            shared.writes.load(Ordering::SeqCst) > at
        }
    };
    if write {
        shared.log.lock().push(line);
    }
    if write
        && let Some(rival) = shared.next_rival(request.uri().path())
        && let Err(error) = steps::succeed(&rival.client, "PATCH", &rival.path, Some(&rival.patch)).await
    {
        return (StatusCode::BAD_GATEWAY, format!("{error:#}")).into_response();
    }
    match cut {
        Some((at, Cut::After)) if write && number == at => {
            drop(pass(&upstream.client, request).await);
            shared.closed.notify_one();
            std::future::pending().await
        }
        Some((at, cut)) if reached(at) => {
            if write && number == at && cut == Cut::Before {
                shared.closed.notify_one();
            }
            std::future::pending().await
        }
        _ if reads_secret(&request) => {
            let answer = pass(&upstream.client, request).await;
            let mut hold = shared.hold.subscribe();
            if hold
                .borrow()
                .is_some_and(|at| shared.writes.load(Ordering::SeqCst) >= at)
            {
                shared.held.notify_one();
                // Fails only when the proxy is dropped.
                let _ = hold.wait_for(Option::is_none).await;
            }
            answer
        }
        _ => pass(&upstream.client, request).await,
    }
}

/// Whether a request reads one Secret, which no watch does.
fn reads_secret(request: &Request) -> bool {
    *request.method() == Method::GET && request.uri().path().contains("/secrets/")
}

async fn pass(client: &Client, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Ok(body) = body.collect().await else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let mut forwarded = http::Request::new(Body::from(body.to_bytes()));
    *forwarded.method_mut() = parts.method;
    *forwarded.uri_mut() = parts.uri;
    for (name, value) in &parts.headers {
        if name != http::header::HOST && name != http::header::CONTENT_LENGTH {
            forwarded.headers_mut().insert(name, value.clone());
        }
    }
    match client.send(forwarded).await {
        Ok(response) => response.map(axum::body::Body::new).into_response(),
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}
