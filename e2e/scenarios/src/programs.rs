//! The programs that a test cluster starts. The first argument of one executable selects the program.

use tracing_subscriber::EnvFilter;

/// The first argument that selects the `windlass` command.
pub const WINDLASS: &str = "windlass";

/// The first argument that selects the operator.
pub const OPERATOR: &str = "operator";

/// The first argument of `windlass` that selects the operator.
pub const RUN: &str = "run";

/// The first argument that selects the sample operator.
pub const SAMPLE_OPERATOR: &str = "sample-operator";

/// Logs to standard error with the filter `RUST_LOG`, or `filter` if it is unset.
pub fn log(filter: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(filter));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
}
