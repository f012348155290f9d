//! A webhook that answers at once: it reads a request as far as it must, and allows it, maybe with changes that it knows before. TLS
//! and connections are those of Windlass.

use std::{net::SocketAddr, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use hyper::{Request, body::Incoming};
use rcgen::{CertificateParams, KeyPair};
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tower::service_fn;
use webhook_transport::{
    CertificateFiles, LiveCertificate,
    server::{
        Encryption, HttpVersions, ReadRequestError, ServerOptions, ServerTls, WebhookServer, read_body,
        reply_json,
    },
};
use windlass_scenarios::{
    request::send,
    steps::{MUTATING, PATIENCE, check, succeed, until},
    test_cluster::TestCluster,
};

/// A webhook that answers at once, while this is kept.
pub(super) struct BareWebhook {
    _server: WebhookServer,
    _certificate: TempDir,
}

/// What has to be read.
#[derive(Deserialize)]
struct Review {
    request: ReviewRequest,
}

#[derive(Deserialize)]
struct ReviewRequest {
    uid: String,
}

/// The longest body that is read.
const LONGEST: usize = 8 << 20;

impl BareWebhook {
    /// Starts it, and has it asked about Deployments of a namespace. It changes them by `patch`.
    pub(super) async fn start(
        cluster: &TestCluster,
        namespace: &str,
        patch: Option<Value>,
    ) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((cluster.backing.address(), 0)).await?;
        let address = listener.local_addr()?;
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new([address.ip().to_string()])?.self_signed(&key)?;
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("tls.crt"), certificate.pem())?;
        std::fs::write(folder.path().join("tls.key"), key.serialize_pem())?;
        let files = CertificateFiles::in_folder(folder.path());
        let live = LiveCertificate::follow(files, Duration::from_secs(3600))?;
        let tls = ServerTls::new(live, HttpVersions::Http1And2)?;
        let server = WebhookServer::new(ServerOptions::default());
        let patch = patch.map(|patch| STANDARD.encode(patch.to_string()));
        let service = service_fn(move |request| answer(request, patch.clone()));
        server.listen(listener, Encryption::Tls(tls), service);
        ask(cluster, address, namespace, &certificate.pem()).await?;
        Ok(Self {
            _server: server,
            _certificate: folder,
        })
    }
}

async fn answer(
    request: Request<Incoming>,
    patch: Option<String>,
) -> Result<hyper::Response<http_body_util::Full<hyper::body::Bytes>>, ReadRequestError> {
    let body = read_body(request.into_body(), LONGEST).await?;
    let uid =
        serde_json::from_slice::<Review>(&body).map_or_else(|_| String::new(), |review| review.request.uid);
    let mut response = json!({"uid": uid, "allowed": true});
    if let Some(patch) = patch {
        response["patchType"] = "JSONPatch".into();
        response["patch"] = patch.into();
    }
    let answer =
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
    Ok(reply_json(answer.to_string()))
}

/// Creates the configuration, and waits until it is obeyed: once with nobody to answer, which must fail.
async fn ask(cluster: &TestCluster, address: SocketAddr, namespace: &str, ca: &str) -> anyhow::Result<()> {
    let configuration = |address: SocketAddr| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": namespace},
            "webhooks": [{
                "name": format!("{namespace}.example.com"),
                "clientConfig": {"url": format!("https://{address}/mutate"), "caBundle": STANDARD.encode(ca)},
                "rules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"], "operations": ["CREATE", "UPDATE"]}],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "failurePolicy": "Fail", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            }],
        })
    };
    let nowhere = SocketAddr::new(address.ip(), 1);
    succeed(&cluster.client, "POST", MUTATING, Some(&configuration(nowhere))).await?;
    let path = super::path(namespace);
    for (address, code) in [(None, 500), (Some(address), 201)] {
        if let Some(address) = address {
            let path = format!("{MUTATING}/{namespace}");
            let webhooks = json!({"webhooks": configuration(address)["webhooks"]});
            succeed(&cluster.client, "PATCH", &path, Some(&webhooks)).await?;
        }
        until("the bare webhook is asked", PATIENCE, async || {
            let answer = send(&cluster.client, "POST", &path, Some(&super::deployment())).await?;
            Ok(check(answer.code == code, || answer.to_string()))
        })
        .await?;
    }
    Ok(())
}
