//! Traces: what takes minutes or days, and goes on after restarts, as one trace each, sent to a collector by OTLP.
//!
//! ```text
//! what is stored -> TraceKey -> PhaseTrace (phases, waits) -> TraceScope of a task -> OpenSpan (requests, probes)
//!                                                                   \-> Traces -> queue -> collector
//! ```
//!
//! Which trace a span is of, and below which other one, follows from what is stored: spans of a process and of the next one, or of
//! two leaders, come together.

mod collector_client;
mod ended_span;
mod exporter;
mod phase_trace;
mod requested_resource;
mod sampling;
mod scope;
mod sink;
#[cfg(test)]
mod tests;
mod trace_key;
mod traced_requests;

pub use collector_client::{CollectorUrl, InvalidCollectorUrl};
pub use ended_span::SpanAttribute;
pub use exporter::TraceSetupError;
pub use phase_trace::{PhaseTrace, TracePhase};
pub use scope::{OpenSpan, TraceScope, spanned, within};
pub use sink::{TraceOptions, Traces};
pub use trace_key::TraceKey;
