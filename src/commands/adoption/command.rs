//! The subcommands of `windlass adoption`.

use std::process::ExitCode;

use clap::Subcommand;

use super::{confirm, undo};

/// Ends an adoption begun by `windlass install --adopt-from`: confirms it, or undoes it.
#[derive(Debug, clap::Args)]
pub(in crate::commands) struct Args {
    #[command(subcommand)]
    command: AdoptionCommand,
}

#[derive(Debug, Subcommand)]
enum AdoptionCommand {
    Confirm(confirm::Args),
    Undo(undo::Args),
}

impl Args {
    pub(in crate::commands) async fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            AdoptionCommand::Confirm(args) => args.run().await,
            AdoptionCommand::Undo(args) => args.run().await,
        }
    }
}
