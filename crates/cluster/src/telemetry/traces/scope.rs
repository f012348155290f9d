//! The trace of a task, and the spans of its work.

use std::{borrow::Cow, fmt::Display, sync::Arc};

use futures::future::Either;
use jiff::Timestamp;
use opentelemetry::{
    KeyValue,
    trace::{SpanId, SpanKind},
};
use parking_lot::Mutex;

use super::{
    ended_span::EndedSpan,
    phase_trace::{PhaseTrace, TracePhase},
    sink::SpanSink,
};

/// A trace in progress.
#[derive(Debug)]
pub struct TraceScope {
    sink: Arc<SpanSink>,
    trace: Mutex<PhaseTrace>,
}

/// The position of a task in a trace.
#[derive(Clone)]
struct Position {
    scope: Arc<TraceScope>,
    /// The current span of the task; by default that of the phase.
    span: Option<SpanId>,
}

/// A span of work in progress, which ends when it is dropped.
#[derive(Debug)]
pub struct OpenSpan {
    scope: Arc<TraceScope>,
    /// The span, without its end.
    span: EndedSpan,
}

/// The error of a span whose future was dropped.
const GIVEN_UP: &str = "given up";

tokio::task_local! {
    static POSITION: Position;
}

/// Runs `work` in a trace, if there is one, which gets spans for its requests and probes.
pub fn within<T>(scope: Option<Arc<TraceScope>>, work: impl Future<Output = T>) -> impl Future<Output = T> {
    with_position(scope.map(|scope| Position { scope, span: None }), work)
}

/// Runs `work` in a span, if there is a trace; spans of its requests and probes are children of it.
///
/// # Errors
///
/// When `work` fails, which the span records, too.
pub async fn run_in_span<T, E: Display>(
    span: Option<OpenSpan>,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let position = span.as_ref().map(|open| Position {
        scope: open.scope.clone(),
        span: Some(open.span.id),
    });
    let done = with_position(position, work).await;
    if let Some(span) = span {
        span.end(done.as_ref().err().map(ToString::to_string));
    }
    done
}

fn with_position<T>(position: Option<Position>, work: impl Future<Output = T>) -> impl Future<Output = T> {
    match position {
        Some(position) => Either::Left(POSITION.scope(position, work)),
        None => Either::Right(work),
    }
}

impl TraceScope {
    pub(super) fn new(sink: Arc<SpanSink>, trace: PhaseTrace) -> Self {
        Self {
            sink,
            trace: Mutex::new(trace),
        }
    }

    /// Returns the trace of the current task.
    pub fn current() -> Option<Arc<Self>> {
        POSITION.try_with(|position| position.scope.clone()).ok()
    }

    /// Starts a phase, if it is later than the current one.
    pub fn enter(&self, phase: TracePhase) {
        self.enter_at(phase, self.sink.now());
    }

    /// Starts a phase at a given time.
    pub fn enter_at(&self, phase: TracePhase, at: Timestamp) {
        let ended = self.trace.lock().enter(phase, at);
        self.sink.record(ended);
    }

    /// Records that the traced work waits, and for which reason.
    pub fn wait(&self, reason: &str, message: &str) {
        let ended = self.trace.lock().wait(reason, message, self.sink.now());
        self.sink.record(ended);
    }

    /// Ends the trace, with an error if there is a `problem`.
    pub fn end(&self, problem: Option<&str>) {
        let ended = self.trace.lock().end(problem, self.sink.now());
        self.sink.record(ended);
    }
}

impl OpenSpan {
    /// Starts a span for internal work of the current task; `None` if it is not traced.
    pub fn internal(name: impl Into<Cow<'static, str>>) -> Option<Self> {
        Self::begin(name.into(), SpanKind::Internal)
    }

    /// Starts a span for a request of the current task.
    pub fn client(name: impl Into<Cow<'static, str>>) -> Option<Self> {
        Self::begin(name.into(), SpanKind::Client)
    }

    fn begin(name: Cow<'static, str>, kind: SpanKind) -> Option<Self> {
        let Position { scope, span } = POSITION.try_with(Position::clone).ok()?;
        let (admitted, trace) = {
            let mut trace = scope.trace.lock();
            (trace.admit()?, trace.key().trace())
        };
        let start = scope.sink.now();
        let span = EndedSpan {
            trace,
            id: SpanId::from_bytes(rand::random()),
            parent: Some(span.unwrap_or(admitted)),
            name,
            kind,
            start,
            end: start,
            attributes: Vec::new(),
            problem: Some(GIVEN_UP.to_owned()),
        };
        Some(Self { scope, span })
    }

    /// Returns the span with one more attribute.
    #[must_use]
    pub fn with(mut self, attribute: KeyValue) -> Self {
        self.note(attribute);
        self
    }

    /// Adds an attribute to the span.
    pub fn note(&mut self, attribute: KeyValue) {
        self.span.attributes.push(attribute);
    }

    /// Ends the span, with an error if there is a `problem`.
    pub fn end(mut self, problem: Option<String>) {
        self.span.problem = problem;
    }

    /// Returns the `traceparent` header of the W3C's Trace Context.
    pub fn traceparent(&self) -> String {
        format!("00-{}-{}-01", self.span.trace, self.span.id)
    }
}

impl Drop for OpenSpan {
    fn drop(&mut self) {
        let mut span = self.span.clone();
        span.end = self.scope.sink.now();
        self.scope.sink.record([span]);
    }
}
