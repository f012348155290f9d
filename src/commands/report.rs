//! `windlass report`: the state of everything that Windlass manages, as one page.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context;
use jiff::Timestamp;
use windlass_report::{ClusterReport, ProblemSeverity};

use super::cluster::{ClusterArgs, explain_error};

/// Writes an HTML page with problems, rotations, bundles, webhooks, and the CAs that each target trusts.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// File for the page; - is standard output.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    cluster: ClusterArgs,
}

impl Args {
    /// Writes the page.
    ///
    /// # Errors
    ///
    /// When the cluster cannot be read, or the file cannot be written.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let cluster = self.cluster.connect().await?;
        let subjects = windlass_ui::gather(&cluster).await.map_err(explain_error)?;
        let version = cluster.kube_version().await.map_err(explain_error)?;
        let report = ClusterReport::new(&subjects, &format!("Kubernetes {version}"), Timestamp::now());
        let page = report.to_html()?;
        if self.file == Path::new("-") {
            std::io::stdout().write_all(page.as_bytes())?;
            return Ok(ExitCode::SUCCESS);
        }
        std::fs::write(&self.file, page).with_context(|| format!("writing {}", self.file.display()))?;
        let failing = report
            .problems()
            .iter()
            .filter(|problem| problem.severity == ProblemSeverity::Failing);
        println!(
            "{}: {} problems, {} of them failing",
            self.file.display(),
            report.problems().len(),
            failing.count()
        );
        Ok(ExitCode::SUCCESS)
    }
}
