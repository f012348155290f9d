//! The arguments, and what is printed.

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

/// Reports every problem of a bundle, one per line: FILE: JSONPATH: message. With --crd-upgrade, everything that an
/// upgrade of CustomResourceDefinitions breaks: CRD VERSION FIELD RULE: message.
///
/// Exits 1 if there is a problem, and prints nothing else on stdout. Warnings end with "(warning)" and do not change
/// the exit code. Does not check objects in a cluster: an install tries these against the new schemas (rule
/// storedObjects).
#[derive(Debug, clap::Args)]
pub(in crate::commands) struct Args {
    /// Bundle: a directory with manifests/ and metadata/, a .tar.gz of it, or - to read such an archive from stdin.
    #[arg(required_unless_present_any = ["rules", "crd_upgrade"])]
    bundle: Option<PathBuf>,

    /// Compare CustomResourceDefinitions: each of OLD and NEW is a file of YAML or JSON documents, a bundle, or - for
    /// stdin. A CRD from a cluster (kubectl get crd NAME -o yaml) also says which versions are stored.
    #[arg(
        long,
        num_args = 2,
        value_names = ["OLD", "NEW"],
        conflicts_with = "bundle"
    )]
    crd_upgrade: Option<Vec<PathBuf>>,

    /// File with a list of exceptions, as in spec.crdUpgradeExceptions of a BundleDeployment: each sets enforcement
    /// (Strict, Warn or None) for a crd, version, field or rule.
    #[arg(
        long,
        value_name = "FILE",
        requires = "crd_upgrade",
        conflicts_with = "bundle"
    )]
    exceptions: Option<PathBuf>,

    /// Print every rule and what it requires, first those for bundles, then those for --crd-upgrade, and exit.
    #[arg(long, exclusive = true)]
    rules: bool,

    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Output {
    /// One problem per line.
    Text,
    /// A list of objects: file, path, rule and message; with --crd-upgrade crd, version, field, rule, message and
    /// enforcement.
    Json,
}

// === impl Args ===

impl Args {
    /// Checks the bundle, or the upgrade.
    ///
    /// # Errors
    ///
    /// When the problems cannot be printed, and when there is nothing to compare; what is wrong with a bundle or an
    /// upgrade is printed and in the exit code.
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
