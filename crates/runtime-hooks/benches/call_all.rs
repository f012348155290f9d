//! Measures calls of a hook with 10 handlers, compared with a bare HTTP client that sends the same bytes:
//! `cargo bench -p runtime-hooks --features client`. First the latencies of both, alternating in one run;
//! then time and allocations.

#![expect(clippy::expect_used, reason = "a failed setup ends the benchmark")]

use std::{
    collections::BTreeMap,
    convert::Infallible,
    io,
    net::SocketAddr,
    sync::{Arc, LazyLock},
    thread,
    time::{Duration, Instant},
};

use bytes::Bytes;
use divan::{AllocProfiler, Bencher};
use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use http_body_util::{BodyExt, Full};
use hyper::{
    Request, Response,
    body::Incoming,
    header::{self, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo},
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use runtime_hooks::{
    Catalog, EmbeddedObject, Hook, Registry,
    client::{CallOptions, CallOrder, HookClient},
    cluster_api::{BeforeClusterCreate, BeforeClusterCreateRequest},
    discovery::{FailurePolicy, Handler},
    registry::ExtensionConfig,
};
use rustls::{
    RootCertStore, ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, pem::PemObject},
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, runtime::Runtime};
use tokio_rustls::TlsAcceptor;
use webhook_transport::{
    ServerReference,
    client::{Resolve, Transport, TransportOptions},
};

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

const HANDLERS: usize = 10;

/// How often each latency is measured.
const ROUNDS: usize = 2000;

const ANSWER: &[u8] = br#"{"status":"Success","message":"","retryAfterSeconds":0}"#;

static BED: LazyLock<Bed> = LazyLock::new(Bed::new);

/// A server and two clients of it.
struct Bed {
    runtime: Runtime,
    hooks: HookClient,
    request: BeforeClusterCreateRequest,
    bare: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    urls: Vec<String>,
    user_agent: HeaderValue,
    body: Bytes,
}

struct LocalAddress(SocketAddr);

fn main() {
    let bed = &*BED;
    bed.runtime.block_on(async {
        for order in [CallOrder::Sequential, CallOrder::Concurrent(HANDLERS)] {
            let (mut ours, mut bare) = (Vec::new(), Vec::new());
            for round in 0..ROUNDS + 100 {
                let started = Instant::now();
                bed.call_all(order).await;
                let took = started.elapsed();
                let started = Instant::now();
                bed.call_bare(order).await;
                // The first calls open connections.
                if round >= 100 {
                    ours.push(took);
                    bare.push(started.elapsed());
                }
            }
            println!("{order:?}: {HANDLERS} handlers, {} bytes each", bed.body.len());
            let (ours, bare) = (
                print_latencies("call_all", &mut ours),
                print_latencies("bare client", &mut bare),
            );
            println!(
                "  call_all takes {:.2} times as long\n",
                ours.as_secs_f64() / bare.as_secs_f64()
            );
        }
    });
    divan::main();
}

/// Prints the latencies and returns their sum.
fn print_latencies(name: &str, took: &mut [Duration]) -> Duration {
    took.sort_unstable();
    let all: Duration = took.iter().sum();
    let at = |part: usize| took[took.len() * part / 100];
    println!(
        "  {name:<12} {:>6.0} calls/s   p50 {:>8.1?}   p99 {:>8.1?}",
        (took.len() * HANDLERS) as f64 / all.as_secs_f64(),
        at(50),
        at(99),
    );
    all
}

#[divan::bench(args = [CallOrder::Sequential, CallOrder::Concurrent(HANDLERS)])]
fn call_all(bencher: Bencher<'_, '_>, order: CallOrder) {
    bencher.bench_local(|| BED.runtime.block_on(BED.call_all(order)));
}

#[divan::bench(args = [CallOrder::Sequential, CallOrder::Concurrent(HANDLERS)])]
fn bare_client(bencher: Bencher<'_, '_>, order: CallOrder) {
    bencher.bench_local(|| BED.runtime.block_on(BED.call_bare(order)));
}

/// A Cluster of about 4 kB.
fn cluster() -> EmbeddedObject {
    let variables: Vec<_> = (0..40)
        .map(|number| json!({"name": format!("variable-{number}"), "value": {"a": number, "text": "x".repeat(40)}}))
        .collect();
    let cluster = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": "c", "namespace": "default"},
        "spec": {"topology": {"classRef": {"name": "class"}, "version": "v1.36.0", "variables": variables}},
    });
    match cluster {
        Value::Object(fields) => EmbeddedObject(fields),
        _ => EmbeddedObject::default(),
    }
}

/// Starts a server on its own thread; returns its CA and its address.
fn serve() -> (String, SocketAddr) {
    let mut ca = CertificateParams::default();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate().expect("randomness")).expect("a CA");
    let key = KeyPair::generate().expect("randomness");
    let leaf = CertificateParams::new(vec!["*.system.svc".to_owned(), "localhost".to_owned()])
        .and_then(|leaf| leaf.signed_by(&key, &ca))
        .expect("a leaf");
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring supports these versions")
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key)
        .expect("the key matches the certificate");
    let tls = TlsAcceptor::from(Arc::new(config));
    let (sender, receiver) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let _ = sender.send(listener.local_addr().expect("it listens"));
            while let Ok((stream, _)) = listener.accept().await {
                let tls = tls.clone();
                tokio::spawn(async move {
                    let _ = stream.set_nodelay(true);
                    if let Ok(stream) = tls.accept(stream).await {
                        let connection = http1::Builder::new();
                        let _ = connection
                            .serve_connection(TokioIo::new(stream), service_fn(answer))
                            .await;
                    }
                });
            }
        });
    });
    (ca.pem(), receiver.recv().expect("it listens"))
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let _ = request.into_body().collect().await;
    Ok(Response::new(Full::new(Bytes::from_static(ANSWER))))
}

impl Bed {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let (ca_bundle, address) = serve();
        let registry = Registry::listed();
        for number in 0..HANDLERS {
            let config = ExtensionConfig {
                name: format!("ext-{number}"),
                resource_version: "1".to_owned(),
                server: ServerReference::service(
                    "system",
                    &format!("ext-{number}"),
                    443,
                    "",
                    ca_bundle.clone(),
                )
                .expect("a Service"),
                namespace_selector: json!({}),
                settings: BTreeMap::new(),
            };
            let handler = Handler {
                name: "x".to_owned(),
                hook: BeforeClusterCreate::reference(),
                timeout_seconds: Some(10),
                failure_policy: FailurePolicy::Fail,
            };
            registry.register(config, vec![handler]).expect("good names");
        }
        let handlers = registry.handlers().expect("the hook is in the catalog");
        let url = |path: &str| format!("https://localhost:{}{path}?timeout=10s", address.port());
        let urls = handlers.iter().map(|handler| url(handler.path())).collect();
        let transport = Transport::new(TransportOptions {
            resolver: Arc::new(LocalAddress(address)),
            proxies: false,
            ..TransportOptions::default()
        });
        let catalog = Arc::new(Catalog::cluster_api());
        let request = BeforeClusterCreateRequest {
            cluster: cluster(),
            ..BeforeClusterCreateRequest::default()
        };
        let definition = catalog
            .get(&BeforeClusterCreate::reference())
            .expect("the hook is in the catalog");
        let Ok(Value::Object(fields)) = serde_json::to_value(&request) else {
            unreachable!("a request is an object");
        };
        let body = serde_json::to_vec(&definition.typed_request(fields))
            .expect("a request is JSON")
            .into();
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(CertificateDer::pem_slice_iter(ca_bundle.as_bytes()).flatten());
        let tls = rustls::ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring supports these versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_only()
            .enable_http1()
            .wrap_connector(tcp);
        Self {
            hooks: HookClient::new(catalog, Arc::new(registry), transport),
            request,
            bare: Client::builder(TokioExecutor::new()).build(connector),
            urls,
            user_agent: HeaderValue::from_str(&TransportOptions::default().user_agent)
                .expect("a valid header value"),
            body,
            runtime,
        }
    }

    async fn call_all(&self, order: CallOrder) {
        let options = CallOptions {
            order,
            ..CallOptions::default()
        };
        let called = self
            .hooks
            .call_all::<BeforeClusterCreate>("default", &self.request, options)
            .await;
        called.expect("all answer");
    }

    async fn call_bare(&self, order: CallOrder) {
        let beside = match order {
            CallOrder::Sequential => 1,
            CallOrder::Concurrent(most) => most,
        };
        let calls = stream::iter(&self.urls).map(async |url| {
            let request = Request::post(url)
                .header(header::CONTENT_TYPE, "application/json")
                .header(header::ACCEPT, "application/json")
                .header(header::USER_AGENT, &self.user_agent)
                .body(Full::new(self.body.clone()))
                .expect("a URL");
            let response = self.bare.request(request).await.expect("it answers");
            let body = response
                .into_body()
                .collect()
                .await
                .expect("it answers")
                .to_bytes();
            serde_json::from_slice::<Value>(&body).expect("the answer is JSON")
        });
        let answers: Vec<_> = calls.buffered(beside).collect().await;
        assert_eq!(answers.len(), HANDLERS);
    }
}

impl Resolve for LocalAddress {
    fn resolve(&self, _: String, _: u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        let addresses = vec![self.0];
        async move { Ok(addresses) }.boxed()
    }
}
