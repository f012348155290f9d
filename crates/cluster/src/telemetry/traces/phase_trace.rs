//! Traces of work in phases: decides which spans end when. The time and the current phase are arguments.

use jiff::Timestamp;
use opentelemetry::{
    KeyValue,
    trace::{SpanId, SpanKind},
};
use windlass_object::text::shortened;

use super::{
    ended_span::{EndedSpan, LONGEST_TEXT},
    trace_key::TraceKey,
};

/// A phase; later phases have higher numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TracePhase {
    /// Its position.
    pub number: u8,
    /// The name of the phase's span.
    pub name: &'static str,
}

/// The trace of work in phases, each of which occurs once.
#[derive(Clone, Debug)]
pub struct PhaseTrace {
    key: TraceKey,
    name: &'static str,
    started: Timestamp,
    attributes: Vec<KeyValue>,
    phase: Option<OpenPhase>,
}

#[derive(Clone, Debug)]
struct OpenPhase {
    phase: TracePhase,
    since: Timestamp,
    wait: Option<OpenWait>,
    /// The number of spans below it.
    children: usize,
    /// The number of spans that were left out.
    left_out: i64,
}

#[derive(Clone, Debug)]
struct OpenWait {
    reason: String,
    message: String,
    since: Timestamp,
}

/// The maximum number of spans per phase and process: work that is stuck for days is reconciled again and
/// again.
const MAX_CHILDREN: usize = 256;

impl PhaseTrace {
    /// Creates a trace whose root has this name and these attributes.
    pub fn new(key: TraceKey, name: &'static str, started: Timestamp, attributes: Vec<KeyValue>) -> Self {
        Self {
            key,
            name,
            started,
            attributes,
            phase: None,
        }
    }

    /// Resumes in this phase, which a previous process has started at `since`, after exporting the earlier
    /// phases.
    #[must_use]
    pub fn resumed(mut self, phase: TracePhase, since: Timestamp) -> Self {
        self.phase = Some(OpenPhase::new(phase, since));
        self
    }

    /// Returns the key that identifies this trace.
    pub fn key(&self) -> &TraceKey {
        &self.key
    }

    /// Starts a phase, and ends the previous one. Earlier phases, through which every reconciliation passes,
    /// are ignored. The first observed phase starts at `started`.
    pub(super) fn enter(&mut self, phase: TracePhase, at: Timestamp) -> Vec<EndedSpan> {
        let since = match &self.phase {
            None => self.started,
            Some(open) if open.phase < phase => at,
            Some(_) => return Vec::new(),
        };
        let ended = self.end_phase(at);
        self.phase = Some(OpenPhase::new(phase, since));
        ended
    }

    /// Starts to wait for this reason, and ends the wait for another reason.
    pub(super) fn wait(&mut self, reason: &str, message: &str, at: Timestamp) -> Option<EndedSpan> {
        let open = self.phase.as_mut()?;
        if let Some(wait) = &mut open.wait
            && wait.reason == reason
        {
            message.clone_into(&mut wait.message);
            return None;
        }
        let ended = self.end_wait(at);
        self.phase.as_mut()?.wait = Some(OpenWait {
            reason: reason.to_owned(),
            message: message.to_owned(),
            since: at,
        });
        ended
    }

    /// Returns the parent of a new span; `None` if there are too many.
    pub(super) fn admit(&mut self) -> Option<SpanId> {
        let open = self.phase.as_mut()?;
        if open.children >= MAX_CHILDREN {
            open.left_out += 1;
            return None;
        }
        open.children += 1;
        let words = ["phase", open.phase.name];
        Some(self.key.span(&words))
    }

    /// Ends all spans, with an error if there is a `problem`.
    pub(super) fn end(&mut self, problem: Option<&str>, at: Timestamp) -> Vec<EndedSpan> {
        let mut ended = self.end_phase(at);
        ended.push(EndedSpan {
            trace: self.key.trace(),
            id: self.key.root(),
            parent: None,
            name: self.name.into(),
            kind: SpanKind::Internal,
            start: self.started,
            end: at,
            attributes: self.attributes.clone(),
            problem: problem.map(str::to_owned),
        });
        ended
    }

    fn end_phase(&mut self, at: Timestamp) -> Vec<EndedSpan> {
        let wait = self.end_wait(at);
        let Some(open) = self.phase.take() else {
            return Vec::new();
        };
        let left_out = (open.left_out > 0).then(|| KeyValue::new("windlass.spans_left_out", open.left_out));
        let attributes = self.attributes.iter().cloned().chain(left_out);
        let phase = EndedSpan {
            trace: self.key.trace(),
            id: self.key.span(&["phase", open.phase.name]),
            parent: Some(self.key.root()),
            name: open.phase.name.into(),
            kind: SpanKind::Internal,
            start: open.since,
            end: at,
            attributes: attributes.collect(),
            problem: None,
        };
        wait.into_iter().chain([phase]).collect()
    }

    fn end_wait(&mut self, at: Timestamp) -> Option<EndedSpan> {
        let wait = self.phase.as_mut()?.wait.take()?;
        let parent = self.admit()?;
        let since = wait.since.as_nanosecond().to_string();
        Some(EndedSpan {
            trace: self.key.trace(),
            id: self.key.span(&["wait", &wait.reason, &since]),
            parent: Some(parent),
            name: "wait".into(),
            kind: SpanKind::Internal,
            start: wait.since,
            end: at,
            attributes: vec![
                KeyValue::new("windlass.reason", wait.reason),
                KeyValue::new("windlass.message", shortened(wait.message.clone(), LONGEST_TEXT)),
            ],
            problem: None,
        })
    }
}

impl OpenPhase {
    fn new(phase: TracePhase, since: Timestamp) -> Self {
        Self {
            phase,
            since,
            wait: None,
            children: 0,
            left_out: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: TracePhase = TracePhase {
        number: 1,
        name: "first",
    };
    const SECOND: TracePhase = TracePhase {
        number: 2,
        name: "second",
    };

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn trace() -> PhaseTrace {
        PhaseTrace::new(TraceKey::new("install", "uid", 1), "install", at(10), Vec::new())
    }

    /// Name, parent, start and end.
    fn summary(trace: &PhaseTrace, spans: &[EndedSpan]) -> Vec<(String, &'static str, i64, i64)> {
        let key = trace.key();
        let parents = [
            (Some(key.root()), "root"),
            (Some(key.span(&["phase", "first"])), "first"),
            (Some(key.span(&["phase", "second"])), "second"),
            (None, "nothing"),
        ];
        let parent = |span: &EndedSpan| parents.iter().find(|(id, _)| *id == span.parent).unwrap().1;
        spans
            .iter()
            .map(|span| {
                assert_eq!(span.trace, key.trace());
                (
                    span.name.to_string(),
                    parent(span),
                    span.start.as_second(),
                    span.end.as_second(),
                )
            })
            .collect()
    }

    #[test]
    fn a_phase_lasts_until_a_later_one_begins() {
        let mut trace = trace();
        assert_eq!(trace.enter(FIRST, at(12)), []);
        assert_eq!(trace.enter(FIRST, at(13)), []);
        let ended = trace.enter(SECOND, at(15));
        assert_eq!(summary(&trace, &ended), [("first".into(), "root", 10, 15)]);
        // The next reconciliation passes through the first phase again.
        assert_eq!(trace.enter(FIRST, at(16)), []);
        let ended = trace.end(None, at(20));
        assert_eq!(
            summary(&trace, &ended),
            [
                ("second".into(), "root", 15, 20),
                ("install".into(), "nothing", 10, 20)
            ]
        );
    }

    #[test]
    fn a_wait_is_a_span_below_its_phase() {
        let mut trace = trace();
        assert_eq!(trace.wait("RollingOut", "0 of 2", at(11)), None);
        trace.enter(FIRST, at(11));
        assert_eq!(trace.wait("RollingOut", "0 of 2", at(12)), None);
        assert_eq!(trace.wait("RollingOut", "1 of 2", at(13)), None);
        let ended: Vec<_> = trace.wait("NotServed", "10.0.0.1", at(14)).into_iter().collect();
        assert_eq!(summary(&trace, &ended), [("wait".into(), "first", 12, 14)]);
        let attribute = ended[0]
            .attributes
            .iter()
            .map(|attribute| attribute.value.to_string());
        assert_eq!(attribute.collect::<Vec<_>>(), ["RollingOut", "1 of 2"]);
        let ended = trace.enter(SECOND, at(15));
        assert_eq!(
            summary(&trace, &ended),
            [("wait".into(), "first", 14, 15), ("first".into(), "root", 10, 15)]
        );
    }

    /// The next process has no state of the previous one, and derives the same parents.
    #[test]
    fn a_process_resumes_the_trace_of_the_previous_one() {
        let mut before = trace();
        before.enter(FIRST, at(11));
        let parent = before.admit();
        let mut after = trace();
        after.enter(FIRST, at(14));
        assert_eq!(after.admit(), parent);
        let ended = after.enter(SECOND, at(15));
        assert_eq!(Some(ended[0].id), parent);
        assert_eq!(summary(&after, &ended), [("first".into(), "root", 10, 15)]);
        let mut resumed = trace().resumed(SECOND, at(13));
        assert_eq!(resumed.enter(FIRST, at(16)), []);
        let ended = resumed.end(None, at(20));
        assert_eq!(ended[0].id, trace().key().span(&["phase", "second"]));
        assert_eq!(ended[0].start, at(13));
    }

    #[test]
    fn the_number_of_spans_per_phase_is_limited() {
        let mut trace = trace();
        assert_eq!(trace.admit(), None);
        trace.enter(FIRST, at(11));
        for _ in 0..MAX_CHILDREN {
            assert!(trace.admit().is_some());
        }
        for _ in 0..3 {
            assert_eq!(trace.admit(), None);
        }
        let ended = trace.end(Some("superseded"), at(12));
        let left_out = KeyValue::new("windlass.spans_left_out", 3);
        assert_eq!(ended[0].attributes, [left_out]);
        assert_eq!(ended[1].problem.as_deref(), Some("superseded"));
    }
}
