//! The `windlass` command.

use std::process::ExitCode;

use anyhow::anyhow;
use windlass::commands::Cli;

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    rustls::crypto::ring::default_provider()
        .install_default()
        .map_err(|_| anyhow!("another part of the program has already chosen a TLS provider"))?;
    let cli = Cli::read(std::env::args_os()).unwrap_or_else(|error| error.exit());
    cli.run().await
}
