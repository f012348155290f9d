//! `windlass interpret`: customizations of Karmada's resource interpreter by hand, without a cluster.

mod cases;
mod check;
mod execute;
mod files;
mod trace;
mod watch;

use std::{path::PathBuf, process::ExitCode};

use clap::ArgGroup;
use interpreter::Operation;

use self::watch::WatchedFiles;

/// Checks, runs and tests customizations of Karmada's resource interpreter, without a cluster.
///
/// One of --check, --operation and --test says what is done:
///
///   windlass interpret -f customization.yaml --check
///   windlass interpret -f customization.yaml --operation InterpretHealth --observed-file observed.yaml
///   windlass interpret -f customization.yaml --operation Retain --desired-file desired.yaml --observed-file observed.yaml
///   windlass interpret -f customization.yaml --operation AggregateStatus --desired-file desired.yaml --status-file items.yaml
///   windlass interpret --test DIR
///
/// Exits 1 where a customization is wrong, an operation fails, or a case does not pass.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, group = ArgGroup::new("action").required(true))]
pub(super) struct Args {
    /// File, or folder of files, with customizations; can be repeated; - is standard input.
    #[arg(short, long, value_name = "FILE", required_unless_present = "test")]
    filename: Vec<PathBuf>,

    /// Look into folders below a folder, too.
    #[arg(short = 'R', long)]
    recursive: bool,

    /// Say of each rule whether it is set and can be used.
    #[arg(long, group = "action")]
    check: bool,

    /// Run the rule of an operation: InterpretReplica, InterpretComponent, ReviseReplica, Retain, AggregateStatus, InterpretStatus,
    /// InterpretHealth or InterpretDependency.
    #[arg(long, group = "action", value_name = "OPERATION")]
    operation: Option<Operation>,

    /// Run the cases of each customizations.yaml below a folder: those in the folder testdata beside it.
    #[arg(long, group = "action", value_name = "DIR", conflicts_with = "filename")]
    test: Option<PathBuf>,

    #[command(flatten)]
    objects: execute::ObjectArgs,

    /// Show each line of a script as it runs, with time and memory.
    #[arg(long, requires = "operation")]
    trace: bool,

    /// Do it again whenever a file changes, until interrupted.
    #[arg(short, long)]
    watch: bool,
}

// === impl Args ===

impl Args {
    /// Does what is asked, once or again and again.
    ///
    /// # Errors
    ///
    /// When files cannot be read; what is wrong with customizations is in the exit code.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        if !self.watch {
            return self.once().await;
        }
        let mut watched = WatchedFiles::new(self.paths());
        loop {
            if let Err(error) = self.once().await {
                eprintln!("error: {error:#}");
            }
            eprintln!("Waiting for changes");
            watched.changed().await;
        }
    }

    async fn once(&self) -> anyhow::Result<ExitCode> {
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

    /// What a change of is waited for.
    fn paths(&self) -> Vec<PathBuf> {
        let given = self.filename.iter().chain(&self.test);
        given.cloned().chain(self.objects.paths()).collect()
    }
}
