//! The programs that a test bed starts: one executable is each of them by its first argument.

use std::{ffi::OsString, process::ExitCode};

use clap::Parser;

/// The first argument that makes the executable the `windlass` command, and so the operator.
pub const WINDLASS: &str = "windlass";

/// The first argument that makes the executable the sample operator.
pub const SAMPLE_OPERATOR: &str = "sample-operator";

/// Runs the program that the first argument names; `None` when it names none.
///
/// To be called first in `main`, with the TLS provider installed.
pub async fn dispatch() -> Option<anyhow::Result<ExitCode>> {
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
