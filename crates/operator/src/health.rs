//! The HTTP server of `/livez`, `/readyz` and `/metrics`.

use std::{collections::BTreeSet, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{RawQuery, State},
    http::StatusCode,
    routing::get,
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing::info;
use webhook_transport::server::{Encryption, ServerOptions};
use windlass_cluster::{Kind, telemetry::Metrics, watch::UnlistedWatch, watches::Watches};

use crate::{
    admission::CertificateResolver,
    listener::{ServeError, listen},
    policies::PolicyStore,
};

/// The state that the endpoints report.
#[derive(Clone)]
pub(crate) struct Health {
    /// Complete watches make the process ready, except watches of foreign kinds that cannot be listed.
    pub watches: Watches,
    /// Metrics that `/metrics` returns.
    pub metrics: Arc<Metrics>,
    /// What a process that serves policies also needs to be ready.
    pub policies: Option<PolicyReadiness>,
}

/// The certificate and the policies that AdmissionReviews are answered with.
#[derive(Clone)]
pub(crate) struct PolicyReadiness {
    certificate: Arc<CertificateResolver>,
    store: Arc<PolicyStore>,
}

/// Serves until `shutdown`.
///
/// # Errors
///
/// When it cannot listen on `bind`.
pub(crate) async fn serve(
    bind: SocketAddr,
    health: Health,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    let listener = listen(bind)?;
    info!(address = %listener.local_addr()?, "Serving /livez, /readyz and /metrics");
    serve_on(listener, health, shutdown).await;
    Ok(())
}

/// Stops without waiting for clients: probes of a terminating process may fail.
async fn serve_on(listener: TcpListener, health: Health, shutdown: CancellationToken) {
    let options = ServerOptions {
        linger: Duration::ZERO,
        ..ServerOptions::default()
    };
    let encryption = Encryption::TlsOrPlain(None);
    webhook_transport::server::serve(
        listener,
        encryption,
        router(health),
        options,
        shutdown.cancelled(),
    )
    .await;
}

fn router(health: Health) -> Router {
    Router::new()
        .route("/livez", get(|| async { "ok" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .with_state(health)
}

async fn ready(State(health): State<Health>, RawQuery(query): RawQuery) -> (StatusCode, String) {
    let is_ready = health.watches.are_complete();
    let missing = health.policies.and_then(|policies| policies.missing());
    if let Some(missing) = missing.filter(|_| is_ready) {
        return (StatusCode::SERVICE_UNAVAILABLE, format!("waiting for {missing}"));
    }
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

impl PolicyReadiness {
    pub(crate) fn new(certificate: Arc<CertificateResolver>, store: &Arc<PolicyStore>) -> Self {
        let store = store.clone();
        Self { certificate, store }
    }

    /// Names what is missing.
    fn missing(&self) -> Option<String> {
        if !self.certificate.has_certificate() {
            return Some(format!("a certificate in {}", self.certificate.secret()));
        }
        let is_complete = self.store.current().is_complete;
        (!is_complete).then(|| "the first compilation of all policies".to_owned())
    }
}

/// Reports whether the query requests details, as for kube-apiserver.
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
    use std::time::Duration;

    use futures::{StreamExt, future::join_all, stream::FuturesUnordered};
    use kube::{Client, client::Body};
    use serde_json::json;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::{TcpSocket, TcpStream},
        time::timeout,
    };
    use tower::{BoxError, service_fn};
    use windlass_cluster::{Cluster, Index, kinds, watch::Watch};
    use windlass_object::secret_keys::{TLS_CERTIFICATE, TLS_PRIVATE_KEY};

    use super::*;
    use crate::{admission::certificate::tests::certificate_and_key, policies::POLICY_KINDS};

    /// The health of a process without watches.
    fn health() -> Health {
        let unreachable = service_fn(|_: http::Request<Body>| async {
            Err::<http::Response<Body>, BoxError>("no API server".into())
        });
        let cluster = Cluster::new(Client::new(unreachable, "default"), Duration::from_secs(1));
        let served = kinds::SECRET.object(Some("windlass-system"), "windlass-cert");
        Health {
            watches: Watches::new(cluster, Arc::new(Index::new()), served).0,
            metrics: Arc::new(Metrics::new()),
            policies: None,
        }
    }

    /// Opens a connection from 127.0.0.`client`.
    async fn connect(address: SocketAddr, client: u8) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from(([127, 0, 0, client], 0))).unwrap();
        socket.connect(address).await.unwrap()
    }

    async fn fetch(address: SocketAddr, client: u8, path: &str) -> String {
        let mut stream = connect(address, client).await;
        let request = format!("GET {path} HTTP/1.0\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn probes_are_answered_despite_idle_connections() {
        let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let served = serve_on(listener, health(), shutdown.clone());
        let served = tokio::spawn(served);
        let idle =
            join_all((0..ServerOptions::default().connections + 10).map(|_| connect(address, 2))).await;
        for path in ["/livez", "/readyz", "/metrics"] {
            let answer = fetch(address, 3, path).await;
            assert!(answer.starts_with("HTTP/1.0 200"), "{answer}");
        }
        let ends = idle
            .into_iter()
            .map(async |mut stream| stream.read(&mut [0]).await);
        let ended = ends.collect::<FuturesUnordered<_>>().take(10).count();
        let ended = timeout(Duration::from_secs(10), ended).await;
        assert_eq!(
            ended.ok(),
            Some(10),
            "the server keeps connections beyond its limit"
        );
        shutdown.cancel();
        timeout(Duration::from_secs(10), served).await.unwrap().unwrap();
    }

    #[test]
    fn the_verbose_answer_lists_each_incomplete_watch_and_why() {
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

    #[tokio::test]
    async fn a_policy_process_is_ready_only_with_a_certificate_and_compiled_policies() {
        let mut health = health();
        let status = async |health: &Health| ready(State(health.clone()), RawQuery(None)).await;
        assert_eq!(status(&health).await.0, StatusCode::OK);

        let secret = kinds::SECRET.object(Some("windlass-system"), "windlass-policies-cert");
        let index = Arc::new(Index::new());
        let certificate = Arc::new(CertificateResolver::new(index.clone(), secret));
        let store = Arc::new(PolicyStore::without_metrics(index.clone()));
        health.policies = Some(PolicyReadiness::new(certificate, &store));
        let waiting = |for_what: &str| (StatusCode::SERVICE_UNAVAILABLE, format!("waiting for {for_what}"));
        let unserved = waiting("a certificate in Secret windlass-system/windlass-policies-cert");
        assert_eq!(status(&health).await, unserved);

        let (chain, key) = certificate_and_key();
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"namespace": "windlass-system", "name": "windlass-policies-cert"},
            "data": {TLS_CERTIFICATE: chain, TLS_PRIVATE_KEY: key},
        });
        index.apply(&Watch::all(kinds::SECRET), secret);
        for watch in POLICY_KINDS.map(Watch::all) {
            index.begin_relist(&watch);
            index.finish_relist(&watch);
        }
        let uncompiled = waiting("the first compilation of all policies");
        assert_eq!(status(&health).await, uncompiled, "the kinds are listed only");
        store.synced().await.unwrap();
        assert_eq!(status(&health).await.0, StatusCode::OK);
    }
}
