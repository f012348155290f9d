//! The sandbox as a program, for kubectl and experiments.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Context;
use clap::Args;
use windlass_sandbox::{Sandbox, SandboxOptions};

/// Starts a sandbox and writes a kubeconfig for it; runs until it is interrupted.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// File for the administrator's kubeconfig.
    #[arg(long, value_name = "FILE")]
    kubeconfig: PathBuf,
    /// Port on loopback [default: a free one].
    #[arg(long, default_value_t = 0)]
    port: u16,
}

/// Runs the sandbox until it is interrupted.
///
/// # Errors
///
/// When the port is in use, or the kubeconfig cannot be written.
pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let sandbox = Sandbox::start(SandboxOptions {
        port: arguments.port,
        ..SandboxOptions::default()
    })
    .await?;
    let kubeconfig = sandbox.kubeconfig("kubernetes-admin", &["system:masters"])?;
    std::fs::write(&arguments.kubeconfig, kubeconfig)
        .with_context(|| format!("cannot write {}", arguments.kubeconfig.display()))?;
    println!(
        "https://{}: kubectl --kubeconfig {} get namespaces",
        sandbox.address(),
        arguments.kubeconfig.display()
    );
    tokio::signal::ctrl_c().await?;
    Ok(ExitCode::SUCCESS)
}
