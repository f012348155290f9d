//! A scripted server of runtime hooks, in this process. The path selects the answer.

use std::{collections::BTreeMap, net::Ipv4Addr, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    extract::{Path, State},
    http::{StatusCode, header::LOCATION},
    response::{IntoResponse, Response},
    routing::post,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use hyper::server::conn::http1;
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use parking_lot::Mutex;
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, sync::DropGuard};

/// A server that listens until it is dropped.
pub(crate) struct ScriptedHooks {
    port: u16,
    /// The certificate, in base64 of PEM.
    ca_bundle: String,
    asked: Arc<Mutex<BTreeMap<String, u64>>>,
    _stop: DropGuard,
}

/// Longer than any client waits.
const SLOW: Duration = Duration::from_secs(60);

/// Larger than any client accepts.
const HUGE: usize = 30 << 20;

impl ScriptedHooks {
    /// Starts listening at `localhost`.
    ///
    /// # Errors
    ///
    /// Fails if there is no port or no certificate.
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let (acceptor, certificate) = certified("localhost")?;
        let asked = Arc::new(Mutex::new(BTreeMap::new()));
        let router = Router::new()
            .route(
                "/{script}/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery",
                post(answer),
            )
            .with_state(asked.clone());
        let stop = CancellationToken::new();
        let served = serve(listener, acceptor, router);
        tokio::spawn(stop.clone().run_until_cancelled_owned(served));
        Ok(Self {
            port,
            ca_bundle: STANDARD.encode(certificate),
            asked,
            _stop: stop.drop_guard(),
        })
    }

    /// The client configuration that requests the answers of `script`.
    pub(crate) fn client_config(&self, script: &str) -> Value {
        json!({"url": format!("https://localhost:{}/{script}", self.port), "caBundle": self.ca_bundle})
    }

    /// How often clients requested the answers of `script`.
    pub(crate) fn request_count(&self, script: &str) -> u64 {
        self.asked.lock().get(script).copied().unwrap_or_default()
    }
}

/// Creates a TLS acceptor with a certificate for `name`, which may be an address, and returns its CA in PEM.
///
/// # Errors
///
/// Fails if no certificate can be issued.
pub(crate) fn certified(name: &str) -> anyhow::Result<(TlsAcceptor, String)> {
    let certified = rcgen::generate_simple_self_signed([name.to_owned()])?;
    let pem = certified.cert.pem();
    let certificate = CertificateDer::from_pem_slice(pem.as_bytes())?;
    let key = PrivateKeyDer::from_pem_slice(certified.signing_key.serialize_pem().as_bytes())?;
    let tls = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)?;
    Ok((TlsAcceptor::from(Arc::new(tls)), pem))
}

/// Answers HTTP over TLS until dropped.
pub(crate) async fn serve(listener: TcpListener, acceptor: TlsAcceptor, router: Router) {
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, router) = (acceptor.clone(), router.clone());
        tokio::spawn(async move {
            if let Ok(tls) = acceptor.accept(stream).await {
                let service = TowerToHyperService::new(router);
                let _ended = http1::Builder::new()
                    .serve_connection(TokioIo::new(tls), service)
                    .await;
            }
        });
    }
}

async fn answer(
    State(asked): State<Arc<Mutex<BTreeMap<String, u64>>>>,
    Path(script): Path<String>,
) -> Response {
    let times = {
        let mut asked = asked.lock();
        let times = asked.entry(script.clone()).or_default();
        *times += 1;
        *times
    };
    let many: Vec<_> = (0..300)
        .map(|index| handler(&format!("handler-{index:03}"), "GeneratePatches"))
        .collect();
    match script.as_str() {
        // Servers written in Go omit the type, and list handlers in any order.
        "good" => found(&[
            handler("second", "GeneratePatches"),
            handler("first", "BeforeClusterCreate"),
            handler("third", "DiscoverVariables"),
        ]),
        "less" => found(&[
            handler("first", "BeforeClusterCreate"),
            handler("third", "DiscoverVariables"),
        ]),
        "many" => found(&many),
        "slow" => {
            tokio::time::sleep(SLOW).await;
            found(&[])
        }
        "error" => (StatusCode::INTERNAL_SERVER_ERROR, "broken").into_response(),
        "wrong-type" => json!({"status": "Success", "handlers": {"first": {}}})
            .to_string()
            .into_response(),
        "unknown-hook" => found(&[
            handler("first", "BeforeCoffee"),
            handler("second", "BeforeClusterCreate"),
        ]),
        "failure" => json!({"status": "Failure", "message": format!("no database, asked {times} times")})
            .to_string()
            .into_response(),
        "redirect" => (
            StatusCode::TEMPORARY_REDIRECT,
            [(
                LOCATION,
                "/good/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery",
            )],
        )
            .into_response(),
        "huge" => Body::from(vec![b' '; HUGE]).into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

fn found(handlers: &[Value]) -> Response {
    json!({"status": "Success", "message": "", "handlers": handlers})
        .to_string()
        .into_response()
}

fn handler(name: &str, hook: &str) -> Value {
    json!({"name": name, "requestHook": {"apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1", "hook": hook}})
}
