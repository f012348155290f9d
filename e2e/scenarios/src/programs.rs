//! The programs that a test cluster starts: one executable is each of them by its first argument.

use tracing_subscriber::EnvFilter;

/// The first argument that makes the executable the `windlass` command.
pub const WINDLASS: &str = "windlass";

/// The first argument that makes the executable the operator.
pub const OPERATOR: &str = "operator";

/// The first argument that makes the `windlass` command the operator.
pub const RUN: &str = "run";

/// The first argument that makes the executable the sample operator.
pub const SAMPLE_OPERATOR: &str = "sample-operator";

/// Logs to standard error what `RUST_LOG` says, or else `filter`.
pub fn log(filter: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(filter));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
}
