//! The subcommands of `windlass bundle`.

use std::process::ExitCode;

use clap::Subcommand;

use super::{pull, push, show};

/// Shows, pushes and pulls bundle images, without a cluster.
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

impl Args {
    pub(in crate::commands) async fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            BundleCommand::Show(args) => args.run().await,
            BundleCommand::Push(args) => args.run().await,
            BundleCommand::Pull(args) => args.run().await,
        }
    }
}

/// Prints the problems of a bundle.
pub(super) fn refuse(problems: impl IntoIterator<Item = impl ToString>) -> ExitCode {
    for problem in problems {
        eprintln!("{}", problem.to_string());
    }
    ExitCode::FAILURE
}
