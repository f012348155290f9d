//! The commands.

use std::process::ExitCode;

use clap::Subcommand;

use super::{approve, list, path, search, show};

/// Shows which packages, channels and bundles are in file-based catalogs (FBC), and paths of upgrades, without a cluster; approves
/// upgrades along a catalog that the operator follows.
#[derive(Debug, clap::Args)]
pub(in crate::commands) struct Args {
    #[command(subcommand)]
    command: CatalogCommand,
}

#[derive(Debug, Subcommand)]
enum CatalogCommand {
    List(list::Args),
    Search(search::Args),
    Show(show::Args),
    Path(path::Args),
    Approve(approve::Args),
}

// === impl Args ===

impl Args {
    /// Runs the command that was given.
    ///
    /// # Errors
    ///
    /// What keeps it from doing its work; what is wrong with a catalog is printed and in the exit code.
    pub(in crate::commands) async fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            CatalogCommand::List(args) => args.run().await,
            CatalogCommand::Search(args) => args.run().await,
            CatalogCommand::Show(args) => args.run().await,
            CatalogCommand::Path(args) => args.run().await,
            CatalogCommand::Approve(args) => args.run().await,
        }
    }
}
