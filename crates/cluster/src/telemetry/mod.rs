//! Logs, metrics and traces.

mod api_requests;
mod logs;
mod metrics;
pub mod traces;

pub use api_requests::ApiRequests;
pub use logs::{LogFormat, chain, start_logs};
pub use metrics::{Metrics, Reading};
