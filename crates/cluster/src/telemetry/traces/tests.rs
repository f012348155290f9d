//! The path of spans from a task through the queue to an exporter or collector.

use std::{future::pending, net::SocketAddr, sync::Arc, time::Duration};

use http::{Request, Response, StatusCode};
use hyper::{body::Incoming, server::conn::http1, service};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use kube::{Client, client::Body};
use opentelemetry::trace::{SpanId, Status};
use opentelemetry_sdk::{
    error::OTelSdkResult,
    trace::{Sampler, SpanData, SpanExporter},
};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tower::{BoxError, service_fn};

use super::{exporter::SpanQueue, *};
use crate::{SystemClock, telemetry::Metrics};

const PHASE: TracePhase = TracePhase {
    number: 1,
    name: "phase",
};

/// An exporter that stores spans.
#[derive(Clone, Debug, Default)]
struct Kept(Arc<Mutex<Vec<SpanData>>>);

impl SpanExporter for Kept {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.0.lock().extend(batch);
        Ok(())
    }
}

/// An exporter that never finishes.
#[derive(Debug)]
struct Stuck;

impl SpanExporter for Stuck {
    async fn export(&self, _: Vec<SpanData>) -> OTelSdkResult {
        pending().await
    }
}

fn traces(exporter: impl SpanExporter + 'static, sampler: Sampler) -> Traces {
    Traces::into_queue(SpanQueue::with_exporter(exporter), sampler, Arc::new(SystemClock))
}

fn trace() -> PhaseTrace {
    PhaseTrace::new(
        TraceKey::new("rotation", "uid", 1),
        "rotation",
        Timestamp::now(),
        Vec::new(),
    )
}

fn counted(traces: &Traces) -> String {
    let metrics = Metrics::new();
    metrics.extend(|registry| traces.register(registry));
    let text = metrics.text().unwrap();
    let counts = text
        .lines()
        .filter(|line| line.starts_with("windlass_trace_spans_total"));
    counts.collect::<Vec<_>>().join("\n")
}

fn attribute(span: &SpanData, name: &str) -> Option<String> {
    let attribute = span
        .attributes
        .iter()
        .find(|attribute| attribute.key.as_str() == name)?;
    Some(attribute.value.to_string())
}

/// Requests, with their `traceparent`.
type ReceivedRequests = Arc<Mutex<Vec<(String, Option<String>)>>>;

/// An API server without Secrets that never responds to a PUT.
fn api_server() -> (Client, ReceivedRequests) {
    let received = ReceivedRequests::default();
    let log = received.clone();
    let server = service_fn(move |request: Request<Body>| {
        let parent = request.headers().get("traceparent");
        let parent = parent.map(|parent| parent.to_str().unwrap().to_owned());
        log.lock().push((request.uri().path().to_owned(), parent));
        async move {
            if request.method() == http::Method::PUT {
                pending::<()>().await;
            }
            let mut answer = Response::new(Body::empty());
            if request.uri().path().contains("secrets") {
                *answer.status_mut() = StatusCode::NOT_FOUND;
            }
            Ok::<_, BoxError>(answer)
        }
    });
    (Client::new(server, "default"), received)
}

async fn send(client: &Client, method: &str, path: &str) {
    let request = Request::builder().method(method).uri(path).body(Body::empty());
    let _ = client.send(request.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_a_task_are_spans_of_its_trace() {
    let kept = Kept::default();
    let traces = traces(kept.clone(), Sampler::AlwaysOn);
    let (client, received) = api_server();
    let client = traces.trace_requests(client);
    let scope = traces.scope(trace).unwrap();
    scope.enter(PHASE);
    let secret = "/api/v1/namespaces/a/secrets/b?fieldManager=c";
    let work = async {
        send(&client, "GET", secret).await;
        let step = OpenSpan::internal("step").unwrap();
        let nested = async {
            send(&client, "PATCH", "/api/v1/namespaces/a/secrets/b").await;
            Err::<(), _>("refused")
        };
        run_in_span(Some(step), nested).await.unwrap_err();
        let slow = send(&client, "PUT", "/api/v1/nodes/a");
        tokio::time::timeout(Duration::from_millis(1), slow)
            .await
            .unwrap_err();
    };
    within(Some(scope.clone()), work).await;
    send(&client, "GET", "/version").await;
    scope.end(None);
    traces.flush().await;

    let spans = kept.0.lock().clone();
    let names: Vec<_> = spans.iter().map(|span| &*span.name).collect();
    assert_eq!(
        names,
        [
            "GET secrets",
            "PATCH secrets",
            "step",
            "PUT nodes",
            "phase",
            "rotation"
        ]
    );
    let [get, patch, step, put, phase, root] = &spans[..] else {
        unreachable!()
    };
    let parents: Vec<_> = spans.iter().map(|span| span.parent_span_id).collect();
    let of = |span: &SpanData| span.span_context.span_id();
    let expected = [
        of(phase),
        of(step),
        of(phase),
        of(phase),
        of(root),
        SpanId::INVALID,
    ];
    assert_eq!(parents, expected);
    let key = TraceKey::new("rotation", "uid", 1);
    assert!(
        spans
            .iter()
            .all(|span| span.span_context.trace_id() == key.trace())
    );
    for (name, value) in [
        ("http.request.method", "GET"),
        ("url.path", "/api/v1/namespaces/a/secrets/b"),
        ("http.response.status_code", "404"),
        ("k8s.namespace.name", "a"),
    ] {
        assert_eq!(attribute(get, name).as_deref(), Some(value), "{name}");
    }
    // A missing object is a valid response.
    assert_eq!(get.status, Status::Unset);
    assert_eq!(patch.status, Status::error("404 Not Found"));
    assert_eq!(step.status, Status::error("refused"));
    assert_eq!(put.status, Status::error("given up"));
    let parents: Vec<_> = received.lock().iter().map(|(_, parent)| parent.clone()).collect();
    let parent = |span: &SpanData| Some(format!("00-{}-{}-01", key.trace(), of(span)));
    // Requests outside a trace are sent unchanged.
    assert_eq!(parents, [parent(get), parent(patch), parent(put), None]);
    assert_eq!(
        counted(&traces),
        r#"windlass_trace_spans_total{outcome="exported"} 6"#
    );
}

#[tokio::test]
async fn without_collector_or_sampling_there_are_no_spans() {
    let nowhere = Traces::default();
    assert!(!nowhere.are_on());
    assert!(nowhere.scope(|| unreachable!()).is_none());
    nowhere.flush().await;
    let none = traces(Kept::default(), Sampler::AlwaysOff);
    assert!(none.scope(trace).is_none());
    within(None, async { assert!(OpenSpan::internal("step").is_none()) }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn adding_spans_never_blocks_and_overflow_is_counted() {
    let traces = traces(Stuck, Sampler::AlwaysOn);
    for number in 0..3000 {
        let scope = traces.scope(|| {
            let key = TraceKey::new("rotation", "uid", number);
            PhaseTrace::new(key, "rotation", Timestamp::now(), Vec::new())
        });
        scope.unwrap().end(None);
    }
    assert_eq!(
        counted(&traces),
        r#"windlass_trace_spans_total{outcome="dropped"} 952"#
    );
    // `flush` gives up after its timeout.
    traces.flush().await;
}

/// Starts a collector that responds like this, and returns its address.
async fn collector(status: StatusCode, answer: usize) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let received = Arc::<Mutex<Vec<String>>>::default();
    let log = received.clone();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let log = log.clone();
            let serve = service::service_fn(move |request: Request<Incoming>| {
                let kind = request.headers()["content-type"].to_str().unwrap();
                log.lock()
                    .push(format!("{} {} {kind}", request.method(), request.uri().path()));
                let answer = Response::builder().status(status).body("x".repeat(answer));
                async { answer }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), serve));
        }
    });
    (address, received)
}

#[tokio::test(flavor = "multi_thread")]
async fn any_response_of_a_collector_is_handled() {
    for (status, answer, outcome) in [
        (StatusCode::OK, 0, "exported"),
        // The spans were accepted; the rest of the response is not understood.
        (StatusCode::OK, 3, "exported"),
        (StatusCode::OK, 10 << 20, "failed"),
        (StatusCode::INTERNAL_SERVER_ERROR, 10, "failed"),
        (StatusCode::TEMPORARY_REDIRECT, 0, "failed"),
    ] {
        let (address, received) = collector(status, answer).await;
        let options = TraceOptions {
            collector: format!("http://{address}/below").parse().unwrap(),
            ca: None,
        };
        let traces = Traces::start(&options, Arc::new(SystemClock)).unwrap();
        traces.scope(trace).unwrap().end(None);
        traces.flush().await;
        let expected = format!(r#"windlass_trace_spans_total{{outcome="{outcome}"}} 1"#);
        assert_eq!(counted(&traces), expected, "{status} {answer}");
        assert_eq!(*received.lock(), ["POST /below/v1/traces application/x-protobuf"]);
    }
}

#[tokio::test]
async fn a_ca_bundle_needs_certificates() {
    let options = |ca: &[u8]| TraceOptions {
        collector: "https://collector".parse().unwrap(),
        ca: Some(ca.to_owned()),
    };
    for ca in [
        &b""[..],
        b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    ] {
        let refused = Traces::start(&options(ca), Arc::new(SystemClock));
        assert!(matches!(refused, Err(TraceSetupError::Tls(_))), "{refused:?}");
    }
}
