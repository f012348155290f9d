//! `windlass hooks`: runtime hooks by hand.

mod call;
mod describe;
mod known;
mod list;
mod openapi;
mod port_forward;
mod serve;

use std::process::ExitCode;

use clap::Subcommand;

/// Shows and calls runtime hooks: Cluster API's extensions, and others that are registered as theirs are.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(list::Args),
    Describe(describe::Args),
    Call(call::Args),
    Serve(serve::Args),
    Openapi(openapi::Args),
}

// === impl Args ===

impl Args {
    /// Runs the command that was given.
    ///
    /// # Errors
    ///
    /// Whatever keeps the command from doing its work.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::List(args) => args.run().await,
            Command::Describe(args) => args.run().await,
            Command::Call(args) => args.run().await,
            Command::Serve(args) => args.run().await,
            Command::Openapi(args) => args.run(),
        }
    }
}
