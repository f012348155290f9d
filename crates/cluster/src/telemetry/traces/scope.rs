//! The trace that a task works on, and the spans of what it does.

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

/// A trace that is under way.
#[derive(Debug)]
pub struct TraceScope {
    sink: Arc<SpanSink>,
    trace: Mutex<PhaseTrace>,
}

/// Where a task is in a trace.
#[derive(Clone)]
struct Position {
    scope: Arc<TraceScope>,
    /// The span that the task is in; that of the phase, where there is no other.
    span: Option<SpanId>,
}

/// A span of something that is done now. It ends when it is dropped.
#[derive(Debug)]
pub struct OpenSpan {
    scope: Arc<TraceScope>,
    /// All but its end.
    span: EndedSpan,
}

/// Why a span ends whose work was not waited for.
const GIVEN_UP: &str = "given up";

tokio::task_local! {
    static POSITION: Position;
}

/// Does `work` in a trace, if there is one: what it sends and dials is told there.
pub fn within<T>(scope: Option<Arc<TraceScope>>, work: impl Future<Output = T>) -> impl Future<Output = T> {
    positioned(scope.map(|scope| Position { scope, span: None }), work)
}

/// Does `work` in a span, if there is one: what it sends and dials is below it.
///
/// # Errors
///
/// When `work` fails, which the span says, too.
pub async fn spanned<T, E: Display>(
    span: Option<OpenSpan>,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let position = span.as_ref().map(|open| Position {
        scope: open.scope.clone(),
        span: Some(open.span.id),
    });
    let done = positioned(position, work).await;
    if let Some(span) = span {
        span.end(done.as_ref().err().map(ToString::to_string));
    }
    done
}

fn positioned<T>(position: Option<Position>, work: impl Future<Output = T>) -> impl Future<Output = T> {
    match position {
        Some(position) => Either::Left(POSITION.scope(position, work)),
        None => Either::Right(work),
    }
}

// === impl TraceScope ===

impl TraceScope {
    pub(super) fn new(sink: Arc<SpanSink>, trace: PhaseTrace) -> Self {
        Self {
            sink,
            trace: Mutex::new(trace),
        }
    }

    /// The trace that this task works on.
    pub fn current() -> Option<Arc<Self>> {
        POSITION.try_with(|position| position.scope.clone()).ok()
    }

    /// A phase begins now, if it is later than the one that lasts.
    pub fn enter(&self, phase: TracePhase) {
        self.enter_at(phase, self.sink.now());
    }

    /// A phase has begun then.
    pub fn enter_at(&self, phase: TracePhase, at: Timestamp) {
        let ended = self.trace.lock().enter(phase, at);
        self.sink.tell(ended);
    }

    /// It waits for something.
    pub fn wait(&self, reason: &str, message: &str) {
        let ended = self.trace.lock().wait(reason, message, self.sink.now());
        self.sink.tell(ended);
    }

    /// It has ended: well, or for a reason that is not.
    pub fn end(&self, problem: Option<&str>) {
        let ended = self.trace.lock().end(problem, self.sink.now());
        self.sink.tell(ended);
    }
}

// === impl OpenSpan ===

impl OpenSpan {
    /// Begins a span of what this task does now inside of this process; `None` where it works on no trace.
    pub fn internal(name: impl Into<Cow<'static, str>>) -> Option<Self> {
        Self::begin(name.into(), SpanKind::Internal)
    }

    /// Begins a span of something that this task asks somebody else for.
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

    /// The same, which says more.
    #[must_use]
    pub fn with(mut self, attribute: KeyValue) -> Self {
        self.note(attribute);
        self
    }

    /// Says more of it.
    pub fn note(&mut self, attribute: KeyValue) {
        self.span.attributes.push(attribute);
    }

    /// It has ended: well, or with a problem.
    pub fn end(mut self, problem: Option<String>) {
        self.span.problem = problem;
    }

    /// What tells whoever is asked of it (`traceparent` of the W3C's Trace Context).
    pub fn traceparent(&self) -> String {
        format!("00-{}-{}-01", self.span.trace, self.span.id)
    }
}

impl Drop for OpenSpan {
    fn drop(&mut self) {
        let mut span = self.span.clone();
        span.end = self.scope.sink.now();
        self.scope.sink.tell([span]);
    }
}
