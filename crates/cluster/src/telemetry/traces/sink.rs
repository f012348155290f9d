//! The sink of spans.

use std::{fmt, sync::Arc, time::Duration};

use jiff::Timestamp;
use kube::Client;
use opentelemetry_sdk::trace::Sampler;
use prometheus_client::registry::Registry;

use super::{
    collector_client::CollectorUrl,
    ended_span::EndedSpan,
    exporter::{SpanQueue, TraceSetupError},
    phase_trace::PhaseTrace,
    sampling::is_sampled,
    scope::TraceScope,
    traced_requests,
};
use crate::clock::Clock;

/// The destination of traces; without a collector no spans are created.
#[derive(Clone, Debug, Default)]
pub struct Traces(Option<Arc<SpanSink>>);

/// Where traces are sent.
#[derive(Clone, Debug)]
pub struct TraceOptions {
    /// URL of the collector.
    pub collector: CollectorUrl,
    /// The CAs of the collector, PEM; `None` for those of the system.
    pub ca: Option<Vec<u8>>,
}

/// Samples ended spans, and queues them for the exporter.
pub(super) struct SpanSink {
    queue: SpanQueue,
    sampler: Sampler,
    clock: Arc<dyn Clock>,
}

/// The timeout for sending the remaining spans at shutdown.
const FLUSH: Duration = Duration::from_secs(3);

impl Traces {
    /// Starts sending traces, with the times of `clock`: that of this machine, because the API server clock
    /// goes back a little whenever a slower API server responds.
    ///
    /// # Errors
    ///
    /// When the options are invalid.
    pub fn start(options: &TraceOptions, clock: Arc<dyn Clock>) -> Result<Self, TraceSetupError> {
        let (queue, sampler) = SpanQueue::start(options)?;
        Ok(Self::into_queue(queue, sampler, clock))
    }

    pub(super) fn into_queue(queue: SpanQueue, sampler: Sampler, clock: Arc<dyn Clock>) -> Self {
        Self(Some(Arc::new(SpanSink {
            queue,
            sampler,
            clock,
        })))
    }

    /// Reports whether traces are sent.
    pub fn are_on(&self) -> bool {
        self.0.is_some()
    }

    /// Returns the scope for tasks that work on this trace; `None` if it is not sent or not sampled.
    pub fn scope(&self, trace: impl FnOnce() -> PhaseTrace) -> Option<Arc<TraceScope>> {
        let sink = self.0.as_ref()?;
        let trace = trace();
        let is_told = is_sampled(&sink.sampler, trace.key().trace());
        is_told.then(|| Arc::new(TraceScope::new(sink.clone(), trace)))
    }

    /// Returns a client that sends through `client`, records a span for each request of a traced task, and
    /// adds the `traceparent` header.
    #[must_use]
    pub fn trace_requests(&self, client: Client) -> Client {
        match self.0 {
            Some(_) => traced_requests::traced_client(client),
            None => client,
        }
    }

    /// Registers the counters of spans in `registry`.
    pub fn register(&self, registry: &mut Registry) {
        if let Some(sink) = &self.0 {
            sink.queue.register(registry);
        }
    }

    /// Sends the remaining spans, within a short timeout.
    pub async fn flush(&self) {
        let Some(sink) = self.0.clone() else { return };
        // Blocks until the exporter thread is done; it logs failures.
        let _ = tokio::task::spawn_blocking(move || sink.queue.end(FLUSH)).await;
    }
}

impl SpanSink {
    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(super) fn record(&self, spans: impl IntoIterator<Item = EndedSpan>) {
        for span in spans {
            self.queue.add(span);
        }
    }
}

impl fmt::Debug for SpanSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpanSink").finish_non_exhaustive()
    }
}
