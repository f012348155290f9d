//! Calls a thousand extensions of which one in ten is dead, silent, lying, dripping or endless: `cargo bench
//! -p runtime-hooks --features client --bench thousand_extensions`. Prints how late the last call returned,
//! how many healthy extensions answered, and the peak memory of the process.

#![expect(clippy::expect_used, reason = "a failed setup ends the benchmark")]

use std::{
    collections::BTreeMap,
    convert::Infallible,
    fs, io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures::{
    FutureExt, StreamExt,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use http_body_util::{BodyExt, StreamBody};
use hyper::{
    Request, Response,
    body::{Frame, Incoming},
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use runtime_hooks::{
    Catalog, Hook, Registry,
    client::{CallOptions, HookClient},
    cluster_api::{BeforeClusterCreate, BeforeClusterCreateRequest},
    discovery::{FailurePolicy, Handler},
    registry::ExtensionConfig,
};
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use webhook_transport::{
    ServerReference,
    client::{Resolve, Transport, TransportOptions},
};

/// The behaviour of an extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behaviour {
    Healthy,
    /// The port is closed.
    Dead,
    Silent,
    Lying,
    /// A byte every 20 ms, without end.
    Dripping,
    /// Status 200 and an endless body.
    Endless,
}

/// Addresses of extensions by host name.
struct Hosts(BTreeMap<String, SocketAddr>);

/// A server of each behaviour, in this process: its small memory is included.
struct Servers {
    ca_bundle: String,
    addresses: Vec<(Behaviour, SocketAddr)>,
}

/// The results of the calls.
#[derive(Default)]
struct Results {
    healthy: usize,
    failed_healthy: usize,
    latest: Duration,
}

const EXTENSIONS: usize = 1000;

const TIMEOUT: Duration = Duration::from_secs(2);

const SOME_WRONG: [Behaviour; 5] = [
    Behaviour::Dead,
    Behaviour::Silent,
    Behaviour::Lying,
    Behaviour::Dripping,
    Behaviour::Endless,
];

#[tokio::main(worker_threads = 2)]
async fn main() {
    let servers = serve();
    for (name, wrong) in [
        ("dead, silent, lying, dripping, endless", &SOME_WRONG[..]),
        ("endless", &[Behaviour::Endless]),
    ] {
        for concurrency in [1, 10, 64] {
            let client = client(&servers, wrong);
            let (idle, peak) = (resident_mib(), Arc::new(AtomicBool::new(true)));
            let watched = watch(peak.clone());
            let started = Instant::now();
            let seen = call_each(&client, wrong, concurrency).await;
            let took = started.elapsed();
            peak.store(false, Ordering::Relaxed);
            let most = watched.join().expect("the thread does not panic");
            println!(
                "{EXTENSIONS} extensions, 100 of them {name}; {concurrency} concurrent calls, {took:.1?} in total:\n  {} healthy of {} answered, the last call returned {:.0?} after its timeout, peak memory {:.0} MiB, {:.0} MiB above idle",
                seen.healthy - seen.failed_healthy,
                seen.healthy,
                seen.latest.saturating_sub(TIMEOUT),
                most,
                most - idle,
            );
        }
    }
}

fn behaviour(number: usize, wrong: &[Behaviour]) -> Behaviour {
    match number % 10 {
        0 => wrong[number / 10 % wrong.len()],
        _ => Behaviour::Healthy,
    }
}

/// A client of a thousand extensions with one handler each.
fn client(servers: &Servers, wrong: &[Behaviour]) -> HookClient {
    let registry = Registry::listed();
    let mut hosts = BTreeMap::new();
    for number in 0..EXTENSIONS {
        let name = format!("ext-{number}");
        let behaviour = behaviour(number, wrong);
        let found = servers.addresses.iter().find(|(known, _)| *known == behaviour);
        // Port 9 is closed.
        let address = found.map_or(([127, 0, 0, 1], 9).into(), |(_, address)| *address);
        hosts.insert(format!("{name}.system.svc"), address);
        let config = ExtensionConfig {
            server: ServerReference::service("system", &name, 443, "", servers.ca_bundle.clone())
                .expect("a Service"),
            name,
            resource_version: "1".to_owned(),
            namespace_selector: json!({}),
            settings: BTreeMap::new(),
        };
        let handler = Handler {
            name: "x".to_owned(),
            hook: BeforeClusterCreate::reference(),
            timeout_seconds: Some(i32::try_from(TIMEOUT.as_secs()).expect("a few")),
            failure_policy: FailurePolicy::Fail,
        };
        registry.register(config, vec![handler]).expect("good names");
    }
    let transport = Transport::new(TransportOptions {
        resolver: Arc::new(Hosts(hosts)),
        proxies: false,
        ..TransportOptions::default()
    });
    HookClient::new(Arc::new(Catalog::cluster_api()), Arc::new(registry), transport)
}

/// Calls each handler once, `concurrency` concurrently.
async fn call_each(client: &HookClient, wrong: &[Behaviour], concurrency: usize) -> Results {
    let request = &BeforeClusterCreateRequest::default();
    let calls = stream::iter(0..EXTENSIONS).map(async |number| {
        let handler = format!("x.ext-{number}");
        let started = Instant::now();
        let called = client.call::<BeforeClusterCreate>(&handler, "default", request, CallOptions::default());
        let called = called.await;
        (behaviour(number, wrong), called.is_ok(), started.elapsed())
    });
    let calls = calls.buffer_unordered(concurrency);
    calls
        .fold(Results::default(), async |mut seen, (behaviour, is_ok, took)| {
            if behaviour == Behaviour::Healthy {
                seen.healthy += 1;
                seen.failed_healthy += usize::from(!is_ok);
            }
            seen.latest = seen.latest.max(took);
            seen
        })
        .await
}

/// Returns the peak memory in MiB while `is_watched` is true.
fn watch(is_watched: Arc<AtomicBool>) -> thread::JoinHandle<f64> {
    thread::spawn(move || {
        let mut most = 0.0_f64;
        while is_watched.load(Ordering::Relaxed) {
            most = most.max(resident_mib());
            thread::sleep(Duration::from_millis(5));
        }
        most
    })
}

/// The current memory of the process in MiB.
fn resident_mib() -> f64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let words = line.and_then(|line| line.split_whitespace().next());
    words
        .and_then(|kib| kib.parse::<f64>().ok())
        .expect("statm has a resident size")
        / 1024.0
}

/// Starts servers of all behaviours on their own thread.
fn serve() -> Servers {
    let mut ca = CertificateParams::default();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate().expect("randomness")).expect("a CA");
    let key = KeyPair::generate().expect("randomness");
    let leaf = CertificateParams::new(vec!["*.system.svc".to_owned()])
        .and_then(|leaf| leaf.signed_by(&key, &ca))
        .expect("a leaf");
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring supports these versions")
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key)
        .expect("the key matches the certificate");
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let tls = TlsAcceptor::from(Arc::new(config));
    let (sender, receiver) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async move {
            for behaviour in SOME_WRONG.into_iter().chain([Behaviour::Healthy]) {
                if behaviour == Behaviour::Dead {
                    continue;
                }
                let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
                let _ = sender.send((behaviour, listener.local_addr().expect("it listens")));
                tokio::spawn(accept(listener, tls.clone(), behaviour));
            }
            drop(sender);
            std::future::pending::<()>().await;
        });
    });
    Servers {
        ca_bundle: ca.pem(),
        addresses: receiver.iter().collect(),
    }
}

async fn accept(listener: TcpListener, tls: TlsAcceptor, behaviour: Behaviour) {
    while let Ok((stream, _)) = listener.accept().await {
        let tls = tls.clone();
        tokio::spawn(async move {
            let Ok(stream) = tls.accept(stream).await else {
                return;
            };
            let service = service_fn(move |request| answer(request, behaviour));
            let _ = auto::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    behaviour: Behaviour,
) -> Result<Response<StreamBody<BoxStream<'static, Result<Frame<Bytes>, Infallible>>>>, Infallible> {
    let _ = request.into_body().collect().await;
    let once = |text: &'static [u8]| stream::iter([Ok(Frame::data(Bytes::from_static(text)))]).boxed();
    let body = match behaviour {
        Behaviour::Healthy => once(br#"{"status":"Success"}"#),
        Behaviour::Lying => once(br#"{"status":"Lie","message":"x"}"#),
        Behaviour::Dead | Behaviour::Silent => std::future::pending().await,
        Behaviour::Dripping => stream::unfold((), async |()| {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Some((Ok(Frame::data(Bytes::from_static(b" "))), ()))
        })
        .boxed(),
        Behaviour::Endless => {
            stream::repeat_with(|| Ok(Frame::data(Bytes::from_static(&[b' '; 16 << 10])))).boxed()
        }
    };
    Ok(Response::new(StreamBody::new(body)))
}

impl Resolve for Hosts {
    fn resolve(&self, host: String, _: u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        let found = self.0.get(&host).copied();
        async move { Ok(found.into_iter().collect()) }.boxed()
    }
}
