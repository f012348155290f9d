//! The arguments and the output of `windlass check`.

use std::{
    fmt::Display,
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::Context;
use clap::ValueEnum;
use serde::Serialize;
use windlass_bundle::{check, rule};
use windlass_crd::upgrade_safety::{self as domain, is_refused};
use windlass_object::Rule;

use super::crd_upgrade::CrdUpgradeArgs;
use crate::commands::bundle::load;

const AFTER_HELP: &str =
    "Prints FILE: JSONPATH: message, with --crd-upgrade CRD VERSION FIELD RULE: message. Exits 1 if there
is a problem; warnings do not count. Objects in a cluster are not checked.

Examples:
  windlass check ./widgets-bundle
  windlass check --crd-upgrade ./widgets-bundle.v1 ./widgets-bundle.v2";

/// Reports every problem of a bundle, or every breaking change of a CRD upgrade, one per line.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(in crate::commands) struct Args {
    /// Bundle: a directory, a .tar.gz, or - for an archive on stdin.
    #[arg(required_unless_present_any = ["rules", "crd_upgrade"])]
    bundle: Option<PathBuf>,

    /// Compare CRDs: YAML or JSON files, bundles, or - for stdin.
    #[arg(
        long,
        num_args = 2,
        value_names = ["OLD", "NEW"],
        conflicts_with = "bundle"
    )]
    crd_upgrade: Option<Vec<PathBuf>>,

    /// List of exceptions, as in spec.crdUpgradeExceptions.
    #[arg(
        long,
        value_name = "FILE",
        requires = "crd_upgrade",
        conflicts_with = "bundle"
    )]
    exceptions: Option<PathBuf>,

    /// Print every rule and what it requires, and exit.
    #[arg(long, exclusive = true)]
    rules: bool,

    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Output {
    Text,
    Json,
}

impl Args {
    /// Checks the bundle, or the upgrade.
    ///
    /// # Errors
    ///
    /// When the problems cannot be printed, or the CRDs to compare cannot be read; problems are printed and
    /// set the exit code.
    pub(crate) async fn run(self) -> anyhow::Result<ExitCode> {
        let Self {
            bundle,
            crd_upgrade,
            exceptions,
            output,
            ..
        } = self;
        if let Some([old, new]) = crd_upgrade.as_deref() {
            let comparison = CrdUpgradeArgs {
                old: old.clone(),
                new: new.clone(),
                exceptions,
            };
            return check_upgrade(comparison, output).await;
        }
        let Some(bundle) = bundle else {
            print_rules().context("printing the rules")?;
            return Ok(ExitCode::SUCCESS);
        };
        let problems = tokio::task::spawn_blocking(move || match load(&bundle) {
            Ok(files) => check::check_files(&files),
            Err(problems) => problems,
        })
        .await
        .context("checking the bundle")?;
        print(&problems, output).context("printing the problems")?;
        Ok(exit_code(problems.is_empty()))
    }
}

async fn check_upgrade(comparison: CrdUpgradeArgs, output: Output) -> anyhow::Result<ExitCode> {
    let findings = tokio::task::spawn_blocking(move || comparison.findings())
        .await
        .context("comparing the CustomResourceDefinitions")??;
    print(&findings, output).context("printing the findings")?;
    Ok(exit_code(!is_refused(&findings)))
}

fn exit_code(good: bool) -> ExitCode {
    if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn print(problems: &[impl Display + Serialize], output: Output) -> io::Result<()> {
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
    for rule in domain::UpgradeRule::ALL {
        writeln!(
            stdout,
            "{rule}: CRD upgrade, {:?}: {}",
            rule.enforcement(),
            rule.explanation()
        )?;
    }
    stdout.flush()
}
