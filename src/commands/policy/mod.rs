//! `windlass policy`: policies by hand, most of it without a cluster.

mod apply;
mod check;
mod diff;
mod disarm;
mod explain;
mod known;
mod policies;
mod problem;
mod request;
mod test;

pub(super) use self::policies::PolicyFiles;

use std::process::ExitCode;

use anyhow::Context;
use clap::Subcommand;
use windlass_object::text::OneLine;

/// Checks, tries, explains and tests policies without a cluster, and disarms those of one: OverridePolicy, ClusterOverridePolicy and ClusterValidatePolicy of
/// policy.kcloudlabs.io/v1alpha1.
///
///   windlass policy check -f policies/
///   windlass policy apply --policy policy.yaml --object pod.yaml
///   windlass policy explain --policy policies/ --object pod.yaml --operation DELETE
///   windlass policy test policies/
///   windlass policy disarm
///
/// Exits 0 where policies are good, allow the object, or pass their cases; 1 where not; 2 where that cannot be told, since a file or
/// an argument is wrong.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
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

/// The exit code where a file or an argument is wrong; clap has the same.
const USAGE: u8 = 2;

// === impl Args ===

impl Args {
    /// Runs the command that was given.
    ///
    /// # Errors
    ///
    /// When it stops halfway; what is wrong with files and policies is told, and in the exit code.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let work: Box<dyn FnOnce() -> anyhow::Result<bool> + Send> = match self.command {
            Command::Check(args) => Box::new(move || args.run()),
            Command::Apply(args) => Box::new(move || args.run()),
            Command::Explain(args) => Box::new(move || args.run()),
            Command::Test(args) => Box::new(move || args.run()),
            Command::Disarm(args) => return args.run().await,
        };
        // Files are read, and programs run for a while.
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
