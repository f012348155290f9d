//! `cargo demo`: see [`windlass_e2e::demo`].

use std::process::ExitCode;

use anyhow::anyhow;
use clap::Parser;
use windlass_e2e::{demo, programs};

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    rustls::crypto::ring::default_provider()
        .install_default()
        .map_err(|_| anyhow!("another part of the program has already chosen a TLS provider"))?;
    if let Some(outcome) = programs::dispatch().await {
        return outcome;
    }
    let arguments = demo::Arguments::parse();
    tracing_subscriber::fmt()
        .with_env_filter(std::env::var("RUST_LOG").unwrap_or_else(|_| "error".to_owned()))
        .with_writer(std::io::stderr)
        .init();
    let report = demo::run(arguments, std::env::current_exe()?).await?;
    println!("{}", demo::summary(&report));
    Ok(if report.failed == 0 && report.requests > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
