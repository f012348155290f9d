//! The `windlass` command.

use std::process::ExitCode;

use anyhow::anyhow;
use clap::Parser;
use windlass::commands::Cli;

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    rustls::crypto::ring::default_provider()
        .install_default()
        .map_err(|_| anyhow!("another part of the program has already chosen a TLS provider"))?;
    Cli::parse().run().await
}
