//! An OTLP collector over HTTP, in this process.

use std::{
    collections::BTreeMap,
    future::pending,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode, header::CONTENT_TYPE},
    routing::post,
};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{AnyValue, KeyValue, any_value},
    trace::v1::{Span, status::StatusCode as SpanStatus},
};
use parking_lot::Mutex;
use prost::Message;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

/// A collector that listens until it is dropped.
pub(crate) struct Collector {
    address: SocketAddr,
    received: Arc<Received>,
    _stop: DropGuard,
}

#[derive(Default)]
struct Received {
    spans: Mutex<Vec<CollectedSpan>>,
    /// Leaves requests unanswered.
    is_hanging: Mutex<bool>,
}

/// A received span. A span that two processes report appears twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CollectedSpan {
    /// The trace id, in hexadecimal.
    pub(crate) trace: String,
    /// The span id.
    pub(crate) id: String,
    /// The parent's span id; empty for a root.
    pub(crate) parent: String,
    pub(crate) name: String,
    /// Start, in nanoseconds.
    pub(crate) start: u64,
    /// End, in nanoseconds.
    pub(crate) end: u64,
    /// The attributes.
    pub(crate) attributes: BTreeMap<String, String>,
    /// Whether the status is not an error.
    pub(crate) succeeded: bool,
    /// The service that reported it.
    pub(crate) service: String,
}

impl Collector {
    /// Starts listening.
    ///
    /// # Errors
    ///
    /// Fails if no port is free.
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let received = Arc::<Received>::default();
        let router = Router::new()
            .route("/v1/traces", post(take))
            .with_state(received.clone());
        let stop = CancellationToken::new();
        let served = async move { axum::serve(listener, router).await };
        tokio::spawn(stop.clone().run_until_cancelled_owned(served));
        Ok(Self {
            address,
            received,
            _stop: stop.drop_guard(),
        })
    }

    /// The URL of the collector.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sets whether requests stay unanswered.
    pub(crate) fn hang(&self, is_hanging: bool) {
        *self.received.is_hanging.lock() = is_hanging;
    }

    /// The spans received so far.
    pub(crate) fn spans(&self) -> Vec<CollectedSpan> {
        self.received.spans.lock().clone()
    }
}

async fn take(State(received): State<Arc<Received>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    if *received.is_hanging.lock() {
        pending::<()>().await;
    }
    if headers
        .get(CONTENT_TYPE)
        .is_none_or(|kind| kind != "application/x-protobuf")
    {
        return StatusCode::UNSUPPORTED_MEDIA_TYPE;
    }
    let Ok(request) = ExportTraceServiceRequest::decode(body) else {
        return StatusCode::BAD_REQUEST;
    };
    let mut spans = received.spans.lock();
    for process in request.resource_spans {
        let resource = attributes(
            process
                .resource
                .map(|resource| resource.attributes)
                .unwrap_or_default(),
        );
        let service = resource.get("service.name").cloned().unwrap_or_default();
        let of_process = process.scope_spans.into_iter().flat_map(|scope| scope.spans);
        spans.extend(of_process.map(|span| CollectedSpan::new(span, &service)));
    }
    StatusCode::OK
}

impl CollectedSpan {
    fn new(span: Span, service: &str) -> Self {
        let status = span.status.map(|status| status.code()).unwrap_or_default();
        Self {
            trace: hexadecimal(&span.trace_id),
            id: hexadecimal(&span.span_id),
            parent: hexadecimal(&span.parent_span_id),
            name: span.name,
            start: span.start_time_unix_nano,
            end: span.end_time_unix_nano,
            attributes: attributes(span.attributes),
            succeeded: status != SpanStatus::Error,
            service: service.to_owned(),
        }
    }
}

fn attributes(attributes: Vec<KeyValue>) -> BTreeMap<String, String> {
    let value = |value: Option<AnyValue>| match value.and_then(|value| value.value) {
        Some(any_value::Value::StringValue(text)) => text,
        Some(any_value::Value::IntValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    };
    attributes
        .into_iter()
        .map(|attribute| (attribute.key, value(attribute.value)))
        .collect()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
