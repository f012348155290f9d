//! Where spans go.

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

/// Where traces are sent, if anywhere: without a collector nothing is made that would be sent.
#[derive(Clone, Debug, Default)]
pub struct Traces(Option<Arc<SpanSink>>);

/// How traces are sent.
#[derive(Clone, Debug)]
pub struct TraceOptions {
    /// The collector.
    pub collector: CollectorUrl,
    /// The CAs by which it is trusted, PEM; those of the system where there are none.
    pub ca: Option<Vec<u8>>,
}

/// Takes spans.
pub(super) struct SpanSink {
    queue: SpanQueue,
    sampler: Sampler,
    clock: Arc<dyn Clock>,
}

/// How long what is still to be sent may take when the process ends.
const FLUSH: Duration = Duration::from_secs(3);

// === impl Traces ===

impl Traces {
    /// Sends traces from now on, with times of `clock`: that of this machine, because the API server's goes back a little
    /// whenever a slower one is heard.
    ///
    /// # Errors
    ///
    /// When the collector can never be reached as this says.
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

    /// Whether they go anywhere.
    pub fn are_on(&self) -> bool {
        self.0.is_some()
    }

    /// What tasks work on that are of this trace; `None` where it goes nowhere.
    pub fn scope(&self, trace: impl FnOnce() -> PhaseTrace) -> Option<Arc<TraceScope>> {
        let sink = self.0.as_ref()?;
        let trace = trace();
        let is_told = is_sampled(&sink.sampler, trace.key().trace());
        is_told.then(|| Arc::new(TraceScope::new(sink.clone(), trace)))
    }

    /// A client that sends through `client`, and tells of each request of a task that works on a trace, also whom it asks.
    #[must_use]
    pub fn telling(&self, client: Client) -> Client {
        match self.0 {
            Some(_) => traced_requests::telling(client),
            None => client,
        }
    }

    /// Tells in `registry` what became of spans.
    pub fn register(&self, registry: &mut Registry) {
        if let Some(sink) = &self.0 {
            sink.queue.register(registry);
        }
    }

    /// Sends what is still to be sent, as far as that takes no longer than a moment.
    pub async fn flush(&self) {
        let Some(sink) = self.0.clone() else { return };
        // It waits for a thread. Whether that has sent everything is said where it could not.
        let _ = tokio::task::spawn_blocking(move || sink.queue.end(FLUSH)).await;
    }
}

// === impl SpanSink ===

impl SpanSink {
    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(super) fn tell(&self, spans: impl IntoIterator<Item = EndedSpan>) {
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
