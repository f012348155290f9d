//! `/livez`, `/readyz` and `/metrics`, on a port of their own.

use std::{net::SocketAddr, sync::Arc};

use axum::{Router, extract::State, http::StatusCode, routing::get};
use tokio_util::sync::CancellationToken;
use tracing::info;
use windlass_cluster::{telemetry::Metrics, watches::Watches};

use crate::listener::{ServeError, listen};

/// What is asked.
#[derive(Clone)]
pub(crate) struct Health {
    /// Ready is when these have seen all there is, but for kinds of others that cannot be listed.
    pub watches: Watches,
    /// What `/metrics` says.
    pub metrics: Arc<Metrics>,
}

/// Serves until `shutdown`.
///
/// # Errors
///
/// When `bind` cannot be listened on, or the listener breaks.
pub(crate) async fn serve(
    bind: SocketAddr,
    health: Health,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    let listener = listen(bind).await?;
    info!(address = %listener.local_addr()?, "Serving /livez, /readyz and /metrics");
    let router = Router::new()
        .route("/livez", get(|| async { "ok" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .with_state(health);
    axum::serve(listener, router)
        .with_graceful_shutdown(shutdown.cancelled_owned())
        .await?;
    Ok(())
}

async fn ready(State(health): State<Health>) -> (StatusCode, String) {
    let unlisted: Vec<_> = health
        .watches
        .unlisted()
        .iter()
        .map(ToString::to_string)
        .collect();
    let unlisted = unlisted.join("; ");
    if !health.watches.are_complete() {
        (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("caches not synced yet: {unlisted}"),
        )
    } else if unlisted.is_empty() {
        (StatusCode::OK, "ok".to_owned())
    } else {
        (StatusCode::OK, format!("ok; cannot list {unlisted}"))
    }
}

async fn metrics(State(health): State<Health>) -> Result<String, StatusCode> {
    health
        .metrics
        .text()
        .map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
}
