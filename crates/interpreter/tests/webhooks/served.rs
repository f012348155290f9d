//! A server on the loopback interface and clients for it.

use std::{
    convert::Infallible,
    future::ready,
    io,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    sync::Arc,
    time::Duration,
};

use futures::future::BoxFuture;
use http::Request;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Bytes, Incoming};
use interpreter::{
    InterpreterSource, ResourceInterpreter,
    webhook::{
        InterpreterClient, WebhookUsage, Webhooks,
        server::{
            InterpreterServer,
            webhook_transport::{
                CertificateFiles, LiveCertificate,
                client::{Resolve, Transport, TransportOptions},
                server::{Encryption, HttpVersions, ServerOptions, ServerTls, WebhookService, serve},
            },
        },
    },
};
use serde_json::{Value, json};
use tempfile::TempDir;
use test_authority::TestAuthority;
use tokio::{net::TcpListener, task::JoinHandle};
use tower::service_fn;

/// How often the server reloads its files.
pub(crate) const PERIOD: Duration = Duration::from_millis(10);

/// The name of the server.
pub(crate) const NAME: &str = "webhook.system.svc";

pub(crate) struct Served {
    pub(crate) folder: TempDir,
    pub(crate) address: SocketAddr,
    task: JoinHandle<()>,
}

/// Resolves every name to one address.
struct FixedAddress(SocketAddr);

pub(crate) type RawResponse = http::Response<UnsyncBoxBody<Bytes, Infallible>>;

impl Served {
    /// Starts a server of handlers with a certificate of `authority`.
    pub(crate) async fn start(authority: &TestAuthority, server: InterpreterServer) -> Self {
        Self::start_service(authority, server).await
    }

    /// Starts a server with custom responses.
    pub(crate) async fn start_raw<F>(
        authority: &TestAuthority,
        answer: impl Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    ) -> Self
    where
        F: Future<Output = RawResponse> + Send + 'static,
    {
        let service = service_fn(move |request| {
            let answered = answer(request);
            async { Ok::<_, Infallible>(answered.await) }
        });
        Self::start_service(authority, service).await
    }

    async fn start_service(authority: &TestAuthority, service: impl WebhookService) -> Self {
        let folder = TempDir::new().unwrap();
        issue(authority, folder.path());
        let files = CertificateFiles::in_folder(folder.path());
        let certificate = LiveCertificate::follow(files, PERIOD).unwrap();
        let tls = ServerTls::new(certificate, HttpVersions::Http1And2).unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let options = ServerOptions::default();
        let task = tokio::spawn(serve(
            listener,
            Encryption::Tls(tls),
            service,
            options,
            std::future::pending(),
        ));
        Self {
            folder,
            address,
            task,
        }
    }

    /// Webhooks that all call this server.
    pub(crate) fn webhooks(&self) -> Arc<Webhooks> {
        let transport = Transport::new(TransportOptions {
            resolver: Arc::new(FixedAddress(self.address)),
            proxies: false,
            ..InterpreterClient::transport_options()
        });
        Arc::new(Webhooks::new(Arc::new(InterpreterClient::new(transport))))
    }

    /// A resource interpreter with one webhook at `path` for all kinds.
    pub(crate) fn interpreter(&self, ca_bundle: &str, path: &str) -> ResourceInterpreter {
        let webhooks = self.webhooks();
        replace(&webhooks, &[webhook("a.example.com", ca_bundle, path)]);
        ask(webhooks)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Resolve for FixedAddress {
    fn resolve(&self, _: String, _: u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        Box::pin(ready(Ok(vec![self.0])))
    }
}

pub(crate) fn ask(webhooks: Arc<Webhooks>) -> ResourceInterpreter {
    let source: Arc<dyn InterpreterSource> = webhooks;
    ResourceInterpreter::new(vec![source])
}

/// Writes a certificate for the server.
pub(crate) fn issue(authority: &TestAuthority, folder: &Path) {
    authority.server(&[NAME]).write(folder);
}

/// A webhook of the Service [`NAME`] for all kinds.
pub(crate) fn webhook(name: &str, ca_bundle: &str, path: &str) -> Value {
    let service = json!({"namespace": "system", "name": "webhook", "path": path});
    json!({
        "name": name,
        "clientConfig": {"service": service, "caBundle": base64(ca_bundle)},
        "rules": [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "kinds": ["*"]}],
        "timeoutSeconds": 1,
        "interpreterContextVersions": ["v1alpha1"],
    })
}

pub(crate) fn replace(webhooks: &Webhooks, items: &[Value]) {
    let states = webhooks.replace(&[json!({
        "apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterWebhookConfiguration",
        "metadata": {"name": "c"}, "webhooks": items,
    })]);
    assert_eq!(states[0].usage, WebhookUsage::Used);
}

pub(crate) fn workload() -> Value {
    json!({
        "apiVersion": "workload.example.io/v1alpha1", "kind": "Workload",
        "metadata": {"namespace": "n", "name": "w"}, "spec": {"replicas": 2}, "status": {"readyReplicas": 2},
    })
}

/// Returns the health of the object, or the error with its causes.
pub(crate) async fn health(interpreter: &ResourceInterpreter) -> Result<bool, String> {
    let workload = workload();
    let asked = interpreter
        .ask(interpreter::Question::Health { object: &workload })
        .await;
    match asked {
        Ok(Some(interpreter::Answer::Health(is_healthy))) => Ok(is_healthy),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.source.to_string()),
    }
}

fn base64(text: &str) -> String {
    serde_json::to_value(interpreter::webhook::server::webhook_transport::Base64Bytes(
        text.into(),
    ))
    .unwrap()
    .as_str()
    .unwrap()
    .to_owned()
}
