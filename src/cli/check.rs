//! `windlass check`: every problem of a bundle.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::ValueEnum;

use crate::cli::bundle::load;
use crate::domain::bundle::{Problem, Rule, rule};
use crate::domain::check;

/// Reports every problem of a bundle, one a line: FILE: JSONPATH: message.
///
/// Exits with 1 when there is one, and prints nothing else on standard output.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The bundle: a folder with manifests/ and metadata/, a .tar.gz of it, or - for such an archive on standard input.
    #[arg(required_unless_present = "rules")]
    bundle: Option<PathBuf>,

    /// Print the name of every rule and what it asks for, and exit.
    #[arg(long, exclusive = true)]
    rules: bool,

    /// How to print the problems.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Output {
    /// FILE: JSONPATH: message, one problem a line.
    Text,
    /// A list of objects with file, path, rule and message.
    Json,
}

// === impl Args ===

impl Args {
    /// Checks the bundle.
    ///
    /// # Errors
    ///
    /// When the problems cannot be printed; what is wrong with the bundle is printed and in the exit code.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let Some(bundle) = self.bundle else {
            print_rules().context("printing the rules")?;
            return Ok(ExitCode::SUCCESS);
        };
        let problems = tokio::task::spawn_blocking(move || match load(&bundle) {
            Ok(files) => check::check_files(&files),
            Err(problems) => problems,
        })
        .await
        .context("checking the bundle")?;
        print(&problems, self.output).context("printing the problems")?;
        Ok(if problems.is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}

fn print(problems: &[Problem], output: Output) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match output {
        Output::Text => problems
            .iter()
            .try_for_each(|problem| writeln!(stdout, "{problem}"))?,
        Output::Json => {
            serde_json::to_writer_pretty(&mut stdout, problems)?;
            writeln!(stdout)?;
        }
    }
    stdout.flush()
}

fn print_rules() -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    for Rule { name, explanation } in rule::ALL {
        writeln!(stdout, "{name}: {explanation}")?;
    }
    stdout.flush()
}
