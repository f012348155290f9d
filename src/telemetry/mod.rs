//! Logs and metrics.

mod logs;
mod metrics;

pub use logs::{LogFormat, start_logs};
pub use metrics::Metrics;
