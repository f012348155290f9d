//! The programs that a test bed starts: one executable is each of them by its first argument.

use std::{ffi::OsString, process::ExitCode};

use anyhow::anyhow;
use clap::Parser;
use tokio::runtime::Runtime;
use tracing_subscriber::EnvFilter;

/// The first argument that makes the executable the `windlass` command, and so the operator.
pub const WINDLASS: &str = "windlass";

/// The first argument that makes the executable the sample operator.
pub const SAMPLE_OPERATOR: &str = "sample-operator";

/// The `main` of an executable that is all of them: runs the one that the first argument names, or else `own`, which logs
/// what `RUST_LOG` says, or else `filter`.
///
/// # Errors
///
/// What the program ended with.
pub fn main(filter: &str, own: impl FnOnce(Runtime) -> anyhow::Result<ExitCode>) -> anyhow::Result<ExitCode> {
    rustls::crypto::ring::default_provider()
        .install_default()
        .map_err(|_| anyhow!("another part of the program has already chosen a TLS provider"))?;
    let runtime = Runtime::new()?;
    if let Some(outcome) = runtime.block_on(dispatch()) {
        return outcome;
    }
    log(filter);
    own(runtime)
}

/// Logs to standard error what `RUST_LOG` says, or else `filter`.
pub fn log(filter: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(filter));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
}

/// Runs the program that the first argument names; `None` when it names none.
async fn dispatch() -> Option<anyhow::Result<ExitCode>> {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    match arguments.get(1)?.to_str()? {
        WINDLASS => {
            arguments.remove(0);
            Some(windlass::cli::Cli::parse_from(arguments).run().await)
        }
        SAMPLE_OPERATOR => {
            arguments.remove(0);
            let arguments = sample_operator::Args::parse_from(arguments);
            Some(sample_operator::run(arguments).await.map(|()| ExitCode::SUCCESS))
        }
        _ => None,
    }
}
