//! `windlass report`: what Windlass looks after, as one page.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context;
use jiff::Timestamp;
use serde_json::Value;
use windlass_cluster::{Cluster, Kind, RequestError, kinds};
use windlass_report::{ClusterReport, ProblemSeverity, ReportedTarget, Subjects};
use windlass_trust::injection::{KINDS, TargetKind};

use super::cluster::{ClusterArgs, explained, list};

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
        let subjects = gather(&cluster).await?;
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

/// Reads what a report is about. Kinds of targets that may not be read are named in it; those that are not served have no
/// objects.
async fn gather(cluster: &Cluster) -> anyhow::Result<Subjects> {
    let mut subjects = Subjects {
        bundle_deployments: list(cluster, &kinds::BUNDLE_DEPLOYMENT, None).await?,
        serving_certificates: list(cluster, &kinds::SERVING_CERTIFICATE, None).await?,
        ..Subjects::default()
    };
    for kind in KINDS.iter() {
        match targets(cluster, kind).await {
            Ok(targets) => subjects.targets.extend(targets),
            Err(error @ RequestError::Refused { .. }) => subjects.unread.push(error.to_string()),
            Err(error) => return Err(explained(error)),
        }
    }
    Ok(subjects)
}

/// The targets of a kind, in the newest version that is served.
async fn targets(cluster: &Cluster, target: &TargetKind) -> Result<Vec<ReportedTarget>, RequestError> {
    for kind in Kind::versions_of(target) {
        let read = |object: Value| ReportedTarget::read(&object, target);
        match cluster.list_as(&kind, None, None, read).await {
            Err(RequestError::UnknownKind { .. }) => {}
            listed => return listed,
        }
    }
    Ok(Vec::new())
}
