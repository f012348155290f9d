//! `windlass report`: what Windlass looks after, as one page.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context;
use jiff::Timestamp;
use windlass_report::{ClusterReport, ProblemSeverity};

use super::cluster::{ClusterArgs, explained};

/// Writes one HTML page that shows problems, rotations under way, bundles and their webhooks, and who trusts which CA until
/// when. It needs nothing else: no script, no server, no network.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Where the page goes; `-` is standard output.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    cluster: ClusterArgs,
}

// === impl Args ===

impl Args {
    /// Writes it.
    ///
    /// # Errors
    ///
    /// When the cluster cannot be read, or the file not be written.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let cluster = self.cluster.connect().await?;
        let subjects = windlass_ui::gather(&cluster).await.map_err(explained)?;
        let version = cluster.kube_version().await.map_err(explained)?;
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
