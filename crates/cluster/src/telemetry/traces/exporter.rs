//! The bounded queue of spans and their export in the background, so that tasks never wait for a collector.

use std::{
    env, fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{ExporterBuildError, Protocol, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    trace::{BatchConfigBuilder, BatchSpanProcessor, Sampler, SpanData, SpanExporter, SpanProcessor},
};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};
use thiserror::Error;
use tracing::{info, warn};

use super::{
    collector_client::{CollectorClient, CollectorTlsError},
    ended_span::EndedSpan,
    sampling::sampler,
    sink::TraceOptions,
};

/// Why traces cannot be set up.
#[derive(Debug, Error)]
pub enum TraceSetupError {
    /// TLS to the collector cannot be set up.
    #[error(transparent)]
    Tls(#[from] CollectorTlsError),
    /// The sampler is unknown.
    #[error(
        "OTEL_TRACES_SAMPLER={name:?} with OTEL_TRACES_SAMPLER_ARG={argument:?} is unknown: use always_on, always_off, or \
         traceidratio with a number from 0 to 1"
    )]
    Sampler {
        /// The name of the sampler.
        name: String,
        /// The argument of the sampler.
        argument: String,
    },
    /// The environment variables of OpenTelemetry are invalid.
    #[error("cannot set up traces")]
    Exporter(#[from] ExporterBuildError),
}

/// The queue of spans to be exported.
pub(super) struct SpanQueue {
    processor: BatchSpanProcessor,
    scope: InstrumentationScope,
    fate: SpanFate,
}

/// Counters of spans by outcome.
#[derive(Clone, Debug, Default)]
struct SpanFate {
    /// The number of queued or in-flight spans.
    waiting: Arc<AtomicUsize>,
    /// Whether the last export failed.
    is_failing: Arc<AtomicBool>,
    counted: Family<SpanOutcome, Counter>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SpanOutcome {
    outcome: &'static str,
}

/// Exports spans and records the outcome.
#[derive(Debug)]
struct WatchedExporter<E> {
    exporter: E,
    fate: SpanFate,
}

/// The maximum number of queued spans: some megabytes.
const LONGEST_QUEUE: usize = 2048;

/// The time to collect a batch of spans; a killed process loses that much.
const BATCH_DELAY: Duration = Duration::from_secs(1);

/// The service name if `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` are not set.
const SERVICE: &str = "windlass";

impl SpanQueue {
    /// Starts the export, and returns the sampler.
    pub(super) fn start(options: &TraceOptions) -> Result<(Self, Sampler), TraceSetupError> {
        let variable = |name| env::var(name).unwrap_or_default();
        let (name, argument) = (
            variable("OTEL_TRACES_SAMPLER"),
            variable("OTEL_TRACES_SAMPLER_ARG"),
        );
        let sampler =
            sampler(Some(&name), Some(&argument)).ok_or(TraceSetupError::Sampler { name, argument })?;
        let mut exporter = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(options.collector.traces())
            .with_http_client(CollectorClient::new(options.ca.as_deref())?)
            .build()?;
        exporter.set_resource(&resource());
        Ok((Self::with_exporter(exporter), sampler))
    }

    /// Creates a queue for an exporter.
    pub(super) fn with_exporter(exporter: impl SpanExporter + 'static) -> Self {
        let fate = SpanFate::default();
        let exporter = WatchedExporter {
            exporter,
            fate: fate.clone(),
        };
        let batches = BatchConfigBuilder::default()
            .with_max_queue_size(LONGEST_QUEUE)
            .with_scheduled_delay(BATCH_DELAY)
            .build();
        Self {
            processor: BatchSpanProcessor::new(exporter, batches),
            scope: InstrumentationScope::builder(SERVICE)
                .with_version(env!("CARGO_PKG_VERSION"))
                .build(),
            fate,
        }
    }

    /// Adds a span, or drops it if the queue is full.
    pub(super) fn add(&self, span: EndedSpan) {
        if self.fate.waiting.fetch_add(1, Ordering::Relaxed) >= LONGEST_QUEUE {
            self.fate.waiting.fetch_sub(1, Ordering::Relaxed);
            self.fate.count("dropped", 1);
            return;
        }
        self.processor.on_end(span.into_data(self.scope.clone()));
    }

    /// Exports the remaining spans, within `patience`, and stops.
    pub(super) fn end(&self, patience: Duration) {
        // Failed exports are counted and logged.
        let _ = self.processor.shutdown_with_timeout(patience);
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "windlass_trace_spans",
            "Spans by outcome: exported, failed, or dropped because the queue was full",
            self.fate.counted.clone(),
        );
    }
}

/// Returns the resource that describes this process.
fn resource() -> Resource {
    let pod = env::var("POD_NAME").ok();
    let instance = pod.map(|pod| KeyValue::new("service.instance.id", pod));
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let resource = Resource::builder().with_attributes(instance.into_iter().chain([version]));
    match is_named() {
        true => resource.build(),
        false => resource.with_service_name(SERVICE).build(),
    }
}

/// Reports whether the environment sets the service name.
fn is_named() -> bool {
    let attributes = env::var("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    env::var("OTEL_SERVICE_NAME").is_ok_and(|name| !name.is_empty())
        || attributes
            .split(',')
            .any(|attribute| attribute.trim().starts_with("service.name="))
}

impl SpanFate {
    fn count(&self, outcome: &'static str, spans: usize) {
        let counted = self.counted.get_or_create(&SpanOutcome { outcome });
        counted.inc_by(u64::try_from(spans).unwrap_or(u64::MAX));
    }

    /// Records an export. Logs the first failure, and the first success after failures.
    fn sent(&self, spans: usize, result: &OTelSdkResult) {
        self.waiting.fetch_sub(spans, Ordering::Relaxed);
        let was_failing = self.is_failing.swap(result.is_err(), Ordering::Relaxed);
        match result {
            Ok(()) => {
                self.count("exported", spans);
                if was_failing {
                    info!("The collector accepts traces again");
                }
            }
            Err(error) => {
                self.count("failed", spans);
                if !was_failing {
                    warn!(%error, "Cannot send traces; they are lost until the collector accepts them");
                }
            }
        }
    }
}

impl<E: SpanExporter> SpanExporter for WatchedExporter<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let result = self.exporter.export(batch).await;
        self.fate.sent(spans, &result);
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

impl fmt::Debug for SpanQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpanQueue")
            .field("fate", &self.fate)
            .finish_non_exhaustive()
    }
}
