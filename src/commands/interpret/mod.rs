//! `windlass interpret`: checks and runs customizations of Karmada's resource interpreter, without a cluster.

mod cases;
mod check;
mod files;
mod operation;
mod trace;
mod watched_files;

use std::{path::PathBuf, process::ExitCode};

use clap::ArgGroup;
use interpreter::Operation;

use self::watched_files::WatchedFiles;

const AFTER_HELP: &str =
    "Exits 1 if a customization is invalid, an operation fails, or a case fails. Operations are
InterpretReplica, InterpretComponent, ReviseReplica, Retain, AggregateStatus, InterpretStatus,
InterpretHealth and InterpretDependency.

Examples:
  windlass interpret -f customization.yaml --check
  windlass interpret -f customization.yaml --operation InterpretHealth --observed-file observed.yaml
  windlass interpret --test DIR";

/// Checks, runs and tests customizations of Karmada's resource interpreter, without a cluster.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP, group = ArgGroup::new("action").required(true))]
pub(super) struct Args {
    /// File or folder with customizations, repeatable; - is standard input.
    #[arg(short, long, value_name = "FILE", required_unless_present = "test")]
    filename: Vec<PathBuf>,

    /// Also read the subfolders of folders.
    #[arg(short = 'R', long)]
    recursive: bool,

    /// Report for each rule whether it is set and valid.
    #[arg(long, group = "action")]
    check: bool,

    /// Run the rule of an operation, such as InterpretHealth.
    #[arg(long, group = "action", value_name = "OPERATION")]
    operation: Option<Operation>,

    /// Run the cases in testdata folders next to customizations.yaml files.
    #[arg(long, group = "action", value_name = "DIR", conflicts_with = "filename")]
    test: Option<PathBuf>,

    #[command(flatten)]
    objects: operation::ObjectArgs,

    /// Show each executed line of scripts, with time and memory.
    #[arg(long, requires = "operation")]
    trace: bool,

    /// Repeat whenever a file changes, until interrupted.
    #[arg(short, long)]
    watch: bool,
}

impl Args {
    /// Runs the command, repeatedly with `--watch`.
    ///
    /// # Errors
    ///
    /// When files cannot be read; problems of customizations set the exit code.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        if !self.watch {
            return self.run_once().await;
        }
        let mut watched = WatchedFiles::new(self.paths());
        loop {
            if let Err(error) = self.run_once().await {
                eprintln!("error: {error:#}");
            }
            eprintln!("Waiting for changes");
            watched.wait_for_change().await;
        }
    }

    async fn run_once(&self) -> anyhow::Result<ExitCode> {
        let succeeds = match (&self.test, self.operation) {
            (Some(folder), _) => cases::run(folder).await?,
            (None, Some(operation)) => {
                let customizations = files::customizations(&self.filename, self.recursive)?;
                self.objects
                    .execute(&customizations, operation, self.trace)
                    .await?
            }
            (None, None) => check::run(&files::customizations(&self.filename, self.recursive)?),
        };
        Ok(match succeeds {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        })
    }

    /// Returns the files to watch.
    fn paths(&self) -> Vec<PathBuf> {
        let given = self.filename.iter().chain(&self.test);
        given.cloned().chain(self.objects.paths()).collect()
    }
}
