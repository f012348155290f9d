//! `windlass hooks`: runtime hooks.

mod call;
mod describe;
mod known_configs;
mod list;
mod openapi;
mod port_forward;
mod serve;

use std::process::ExitCode;

use clap::Subcommand;

/// Lists, calls and serves runtime hooks, such as Cluster API's extensions.
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

impl Args {
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
