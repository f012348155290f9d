//! `/livez`, `/readyz` and `/metrics`, on a port of their own.

use std::{collections::BTreeSet, net::SocketAddr, sync::Arc};

use axum::{
    Router,
    extract::{RawQuery, State},
    http::StatusCode,
    routing::get,
};
use tokio_util::sync::CancellationToken;
use tracing::info;
use windlass_cluster::{Kind, telemetry::Metrics, watch::UnlistedWatch, watches::Watches};

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

async fn ready(State(health): State<Health>, RawQuery(query): RawQuery) -> (StatusCode, String) {
    let is_ready = health.watches.are_complete();
    let status = if is_ready {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let text = if is_verbose(query.as_deref()) {
        verbose(is_ready, &health.watches.unlisted_watches())
    } else {
        brief(is_ready, &health.watches.unlisted())
    };
    (status, text)
}

/// Whether all of it is asked for, as of kube-apiserver.
fn is_verbose(query: Option<&str>) -> bool {
    let mut parameters = query.unwrap_or_default().split('&');
    parameters.any(|parameter| parameter.split('=').next() == Some("verbose"))
}

fn brief(is_ready: bool, unlisted: &BTreeSet<Kind>) -> String {
    let unlisted: Vec<_> = unlisted.iter().map(ToString::to_string).collect();
    let unlisted = unlisted.join("; ");
    if !is_ready {
        format!("caches not synced yet: {unlisted}")
    } else if unlisted.is_empty() {
        "ok".to_owned()
    } else {
        format!("ok; cannot list {unlisted}")
    }
}

fn verbose(is_ready: bool, unlisted: &[UnlistedWatch]) -> String {
    let mut text: String = unlisted.iter().map(|watch| format!("[-]{watch}\n")).collect();
    text += match (is_ready, unlisted.is_empty()) {
        (true, true) => "[+]caches synced\nreadyz check passed\n",
        (true, false) => "[+]caches of all other kinds synced\nreadyz check passed\n",
        (false, _) => "[-]caches not synced yet\nreadyz check failed\n",
    };
    text
}

async fn metrics(State(health): State<Health>) -> Result<String, StatusCode> {
    health
        .metrics
        .text()
        .map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
}

#[cfg(test)]
mod tests {
    use windlass_cluster::watch::Watch;

    use super::*;

    #[test]
    fn whoever_asks_for_all_of_it_hears_of_each_watch_that_has_not_listed_and_why() {
        let unlisted = |name: &'static str, problem: Option<&str>| UnlistedWatch {
            watch: Watch::all(Kind::new("example.com/v1", name)),
            problem: problem.map(str::to_owned),
        };
        let watches = [unlisted("Even", None), unlisted("Odd", Some("odds is forbidden"))];
        let text = verbose(true, &watches);
        for line in [
            "[-]example.com/v1, Kind=Even: no answer yet",
            "[-]example.com/v1, Kind=Odd: odds is forbidden",
            "readyz check passed",
        ] {
            assert!(text.lines().any(|shown| shown == line), "{text}");
        }
        assert!(verbose(false, &watches).ends_with("readyz check failed\n"));
        let asked = |query| is_verbose(Some(query));
        assert!(asked("verbose") && asked("a=b&verbose=true"));
        assert!(!asked("a=verbose") && !is_verbose(None));
    }
}
