//! A cluster of one process, for kubectl and for trying things out.

use std::path::PathBuf;

use anyhow::Context;
use clap::Parser;
use tracing_subscriber::EnvFilter;
use windlass_sandbox::{Options, Sandbox};

/// Starts a sandbox and writes a kubeconfig for it; it lives until it is interrupted.
#[derive(Debug, Parser)]
struct Args {
    /// Where to write the administrator's kubeconfig.
    #[arg(long, value_name = "FILE")]
    kubeconfig: PathBuf,
    /// The port on loopback; a free one by default.
    #[arg(long, default_value_t = 0)]
    port: u16,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    let sandbox = Sandbox::start(Options {
        port: args.port,
        ..Options::default()
    })
    .await?;
    let kubeconfig = sandbox.kubeconfig("kubernetes-admin", &["system:masters"])?;
    std::fs::write(&args.kubeconfig, kubeconfig)
        .with_context(|| format!("cannot write {}", args.kubeconfig.display()))?;
    println!(
        "https://{}: kubectl --kubeconfig {} get namespaces",
        sandbox.address(),
        args.kubeconfig.display()
    );
    tokio::signal::ctrl_c().await?;
    Ok(())
}
