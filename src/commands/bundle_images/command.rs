//! The commands.

use std::process::ExitCode;

use clap::Subcommand;

use super::{pull, push, show};

/// Shows bundles, pushes them to registries as images, and pulls them, without a cluster.
#[derive(Debug, clap::Args)]
pub(in crate::commands) struct Args {
    #[command(subcommand)]
    command: BundleCommand,
}

#[derive(Debug, Subcommand)]
enum BundleCommand {
    Show(show::Args),
    Push(push::Args),
    Pull(pull::Args),
}

// === impl Args ===

impl Args {
    /// Runs the command that was given.
    ///
    /// # Errors
    ///
    /// What keeps it from doing its work; what is wrong with a bundle is printed and in the exit code.
    pub(in crate::commands) async fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            BundleCommand::Show(args) => args.run().await,
            BundleCommand::Push(args) => args.run().await,
            BundleCommand::Pull(args) => args.run().await,
        }
    }
}

/// Prints what is wrong with a bundle, and fails.
pub(super) fn refuse(problems: impl IntoIterator<Item = impl ToString>) -> ExitCode {
    for problem in problems {
        eprintln!("{}", problem.to_string());
    }
    ExitCode::FAILURE
}
