//! The subcommands of `windlass catalog`.

use std::process::ExitCode;

use clap::Subcommand;

use super::{approve, list, path, search, show};

/// Reads file-based catalogs (FBC), shows upgrade paths, and approves upgrades.
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

impl Args {
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
