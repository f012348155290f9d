//! The commands.

mod check;
pub mod connect;
pub mod leader_election;
pub mod manifests;
mod render;
pub mod run;
mod yaml;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Installs operator bundles, gives their webhooks certificates, and rotates them without a failed call.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, about, disable_help_subcommand = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Args),
    Manifests(manifests::Args),
    Check(check::Args),
    Render(render::Args),
}

impl Cli {
    /// Runs the command that was given.
    ///
    /// # Errors
    ///
    /// Whatever keeps the command from doing its work; what it found wrong with its input is in the exit code.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Run(args) => args.run().await,
            Command::Manifests(args) => args.run(),
            Command::Check(args) => args.run().await,
            Command::Render(args) => args.run().await,
        }
    }
}
