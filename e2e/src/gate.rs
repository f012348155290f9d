//! A gate between the operator and the API server: counts the operator's writes and can cut it off at any of them.
//!
//! It works in front of any API server: a plain HTTP proxy on loopback that forwards with the operator's own
//! credentials.

use std::{
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
    http::{Method, StatusCode},
    response::{IntoResponse, Response},
};
use http_body_util::BodyExt;
use kube::{Client, client::Body};
use parking_lot::Mutex;
use tokio::{net::TcpListener, sync::Notify, task::JoinHandle};

/// Where the operator is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Before the write reaches the API server.
    Before,
    /// After it was carried out, before its answer comes back.
    After,
}

/// A running gate.
#[derive(Debug)]
pub struct Gate {
    address: SocketAddr,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    writes: AtomicU64,
    cut: Mutex<Option<(u64, Cut)>>,
    closed: Notify,
    log: Mutex<Vec<String>>,
}

#[derive(Clone)]
struct Upstream {
    client: Client,
    shared: Arc<Shared>,
}

// === impl Gate ===

impl Gate {
    /// Opens a gate that forwards with `client`, which must be the operator's.
    ///
    /// # Errors
    ///
    /// When no port can be had.
    pub async fn open(client: Client) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .context("listening for the gate")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            writes: AtomicU64::new(0),
            cut: Mutex::new(None),
            closed: Notify::new(),
            log: Mutex::new(Vec::new()),
        });
        let router = Router::new().fallback(forward).with_state(Upstream {
            client,
            shared: shared.clone(),
        });
        let server = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                tracing::error!(%error, "The gate ended");
            }
        });
        Ok(Self {
            address,
            shared,
            server,
        })
    }

    /// A kubeconfig that leads through the gate.
    pub fn kubeconfig(&self) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: gate\n\
             clusters: [{{name: gate, cluster: {{server: \"http://{}\"}}}}]\n\
             contexts: [{{name: gate, context: {{cluster: gate, user: gate}}}}]\n\
             users: [{{name: gate, user: {{}}}}]\n",
            self.address
        )
    }

    /// How many writes came through.
    pub fn writes(&self) -> u64 {
        self.shared.writes.load(Ordering::SeqCst)
    }

    /// The writes that came through, as `VERB path`.
    pub fn log(&self) -> Vec<String> {
        self.shared.log.lock().clone()
    }

    /// Cuts the operator off at the `number`th write from now, counted from 1, for as long as the gate stands.
    /// [`Gate::closed`] tells when.
    pub fn cut_at(&self, number: u64, cut: Cut) {
        *self.shared.cut.lock() = Some((self.writes() + number, cut));
    }

    /// Waits until the gate has cut the operator off.
    pub async fn closed(&self) {
        self.shared.closed.notified().await;
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Whether a request changes an object that matters: events and leases are not part of the state.
fn is_write(method: &Method, path: &str) -> bool {
    let changes = matches!(
        *method,
        Method::POST | Method::PUT | Method::PATCH | Method::DELETE
    );
    changes && !path.contains("/events") && !path.contains("/leases") && !path.contains("reviews")
}

async fn forward(State(upstream): State<Upstream>, request: Request) -> Response {
    let shared = &upstream.shared;
    let write = is_write(request.method(), request.uri().path());
    let number = if write {
        shared.writes.fetch_add(1, Ordering::SeqCst) + 1
    } else {
        0
    };
    let cut = *shared.cut.lock();
    let reached = |at: u64| {
        if write {
            number >= at
        } else {
            shared.writes.load(Ordering::SeqCst) > at
        }
    };
    if write {
        shared
            .log
            .lock()
            .push(format!("{} {}", request.method(), request.uri().path()));
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
        _ => pass(&upstream.client, request).await,
    }
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
