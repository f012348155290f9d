//! `windlass policy`: checks and applies policies, mostly without a cluster.

mod apply;
mod check;
mod data_files;
mod diff;
mod disarm;
mod explain;
mod policy_files;
mod problem;
mod request;
mod test;

pub(super) use self::policy_files::PolicyFiles;

use std::process::ExitCode;

use anyhow::Context;
use clap::Subcommand;
use windlass_object::text::OneLine;

const AFTER_HELP: &str = "The kinds are OverridePolicy, ClusterOverridePolicy and ClusterValidatePolicy of
policy.kcloudlabs.io/v1alpha1. Exits 0 if policies are valid, allow the object, or pass their cases;
1 if not; 2 if a file or an argument is invalid.

Examples:
  windlass policy check -f policies/
  windlass policy apply --policy policy.yaml --object pod.yaml
  windlass policy explain --policy policies/ --object pod.yaml --operation DELETE
  windlass policy test policies/";

/// Checks, applies, explains and tests policies without a cluster, and disarms those of a cluster.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Check(check::Args),
    Apply(apply::Args),
    Explain(explain::Args),
    Test(test::Args),
    Disarm(disarm::Args),
}

/// The exit code for invalid files and arguments, as in clap.
const USAGE: u8 = 2;

impl Args {
    /// Runs the command.
    ///
    /// # Errors
    ///
    /// When the command panics; problems of files and policies are printed and set the exit code.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let work: Box<dyn FnOnce() -> anyhow::Result<bool> + Send> = match self.command {
            Command::Check(args) => Box::new(move || args.run()),
            Command::Apply(args) => Box::new(move || args.run()),
            Command::Explain(args) => Box::new(move || args.run()),
            Command::Test(args) => Box::new(move || args.run()),
            Command::Disarm(args) => return args.run().await,
        };
        // Blocking: reads files and runs programs for a while.
        let done = tokio::task::spawn_blocking(work);
        match done.await.context("running the command")? {
            Ok(true) => Ok(ExitCode::SUCCESS),
            Ok(false) => Ok(ExitCode::FAILURE),
            Err(error) => {
                let told = format!("{error:#}");
                told.lines()
                    .for_each(|line| eprintln!("error: {}", OneLine(line)));
                Ok(ExitCode::from(USAGE))
            }
        }
    }
}
