//! Ended spans.

use std::{borrow::Cow, time::SystemTime};

use jiff::Timestamp;
use opentelemetry::{
    InstrumentationScope, KeyValue,
    trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState},
};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use windlass_object::text::shortened;

pub use opentelemetry::KeyValue as SpanAttribute;

/// A span that has ended, for the exporter.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct EndedSpan {
    pub(super) trace: TraceId,
    pub(super) id: SpanId,
    /// `None` for the root.
    pub(super) parent: Option<SpanId>,
    pub(super) name: Cow<'static, str>,
    pub(super) kind: SpanKind,
    pub(super) start: Timestamp,
    pub(super) end: Timestamp,
    pub(super) attributes: Vec<KeyValue>,
    /// The error, if the work failed.
    pub(super) problem: Option<String>,
}

/// The maximum length, in bytes, of untrusted texts.
pub(super) const LONGEST_TEXT: usize = 256;

impl EndedSpan {
    /// Converts to the exporter's format.
    pub(super) fn into_data(self, scope: InstrumentationScope) -> SpanData {
        let context = SpanContext::new(
            self.trace,
            self.id,
            TraceFlags::SAMPLED,
            false,
            TraceState::default(),
        );
        let start = SystemTime::from(self.start);
        SpanData {
            span_context: context,
            parent_span_id: self.parent.unwrap_or(SpanId::INVALID),
            parent_span_is_remote: false,
            span_kind: self.kind,
            name: self.name,
            start_time: start,
            // The clock may have been set back.
            end_time: SystemTime::from(self.end).max(start),
            attributes: self.attributes,
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: match self.problem {
                Some(problem) => Status::error(shortened(problem, LONGEST_TEXT)),
                None => Status::Unset,
            },
            instrumentation_scope: scope,
        }
    }
}
