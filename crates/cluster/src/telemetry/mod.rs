//! Logs and metrics.

mod logs;
mod metrics;

pub use logs::{LogFormat, chain, start_logs};
pub use metrics::{Metrics, Reading};
