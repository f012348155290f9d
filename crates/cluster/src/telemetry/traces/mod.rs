//! Traces of processes that take minutes or days and continue after restarts, as one trace each, sent to a
//! collector by OTLP.
//!
//! ```text
//! what is stored -> TraceKey -> PhaseTrace (phases, waits) -> TraceScope of a task -> OpenSpan (requests, probes)
//!                                                                   \-> Traces -> queue -> collector
//! ```
//!
//! Trace and parent of a span are derived from stored state, so that spans of successive processes, or of two
//! leaders, belong to the same trace.

mod collector_client;
mod ended_span;
mod exporter;
mod phase_trace;
mod sampling;
mod scope;
mod sink;
#[cfg(test)]
mod tests;
mod trace_key;
mod traced_requests;
mod traced_resource;

pub use collector_client::{CollectorUrl, InvalidCollectorUrl};
pub use ended_span::SpanAttribute;
pub use exporter::TraceSetupError;
pub use phase_trace::{PhaseTrace, TracePhase};
pub use scope::{OpenSpan, TraceScope, run_in_span, within};
pub use sink::{TraceOptions, Traces};
pub use trace_key::TraceKey;
