//! `e2e/soak`: see [`windlass_e2e::soak`].

use std::process::ExitCode;

use anyhow::anyhow;
use clap::Parser;
use windlass_e2e::{programs, soak};

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    rustls::crypto::ring::default_provider()
        .install_default()
        .map_err(|_| anyhow!("another part of the program has already chosen a TLS provider"))?;
    if let Some(outcome) = programs::dispatch().await {
        return outcome;
    }
    let arguments = soak::Arguments::parse();
    if arguments.plan {
        println!("{arguments}");
        return Ok(ExitCode::SUCCESS);
    }
    tracing_subscriber::fmt()
        .with_env_filter(std::env::var("RUST_LOG").unwrap_or_else(|_| "error".to_owned()))
        .with_writer(std::io::stderr)
        .init();
    let outcome = soak::run(arguments, std::env::current_exe()?).await?;
    println!("{outcome}");
    Ok(if outcome.is_good() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
