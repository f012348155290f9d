//! The commands.

use std::process::ExitCode;

use clap::Subcommand;

use super::{confirm, undo};

/// Ends an adoption that `windlass install --adopt-from` has begun: for good, or back to whom it was adopted from.
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

// === impl Args ===

impl Args {
    /// Runs the command that was given.
    ///
    /// # Errors
    ///
    /// What keeps it from doing its work; it can be run again.
    pub(in crate::commands) async fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            AdoptionCommand::Confirm(args) => args.run().await,
            AdoptionCommand::Undo(args) => args.run().await,
        }
    }
}
