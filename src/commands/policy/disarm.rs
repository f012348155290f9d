//! Taking the webhooks of policies away, before what answers them goes.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use serde_json::json;
use windlass_cluster::{Cluster, kinds};
use windlass_object::{GoDuration, ObjectKey, names, object};
use windlass_operator::admission::AdmissionService;

use super::super::{
    cluster::{ClusterArgs, OperatorArgs, explained},
    writing::{observed, relabel, until},
};
use crate::terminal::{Progress, ProgressFormat};

/// Takes the webhooks of policies away: from then on nothing is overridden or validated, and no write waits for an answer.
///
/// Run it before policies are turned off or Windlass is removed with kubectl; the chart does by itself. The policies stay. Exits 0 when
/// every API server has had the time to observe that.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Have policies armed again that were disarmed, as soon as their servers are proven.
    #[arg(long)]
    undo: bool,

    /// Maximum time to wait.
    #[arg(long, default_value = "2m", value_name = "DURATION")]
    timeout: GoDuration,

    #[command(flatten)]
    operator: OperatorArgs,

    #[command(flatten)]
    cluster: ClusterArgs,
}

/// How long what serves policies has for it. When that does not run, this command deletes the configurations: nobody puts them back.
const ABANDONED: Duration = Duration::from_secs(10);

// === impl Args ===

impl Args {
    /// Disarms policies, or has them armed again.
    ///
    /// # Errors
    ///
    /// When the cluster does not take it, or the configurations do not go.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let cluster = self.cluster.connect().await?;
        let name = AdmissionService::POLICIES.name;
        let service = kinds::SERVICE.object(Some(&self.operator.operator_namespace), name);
        if self.undo {
            let found = cluster.read(&service).await.map_err(explained)?;
            found.with_context(|| {
                format!("{service} not found: turn policies on, see manifests/policies.yaml")
            })?;
            annotate(&cluster, &service, None).await?;
            println!("Policies are armed again as soon as their servers are proven");
            return Ok(ExitCode::SUCCESS);
        }
        annotate(&cluster, &service, Some("true")).await?;
        let kinds = [
            kinds::MUTATING_WEBHOOK_CONFIGURATION,
            kinds::VALIDATING_WEBHOOK_CONFIGURATION,
        ];
        let configurations = kinds.map(|kind| kind.object(None, name));
        let mut progress = Progress::new(ProgressFormat::Text);
        let patience = self.timeout.0.unsigned_abs();
        gone(&cluster, &configurations, &mut progress, patience).await?;
        observed(&mut progress, "that no webhook of policies is left").await;
        for configuration in &configurations {
            if cluster.read(configuration).await.map_err(explained)?.is_some() {
                bail!(
                    "{configuration} was created again: is the annotation {} of {service} changed by somebody?",
                    names::DISARMED
                );
            }
        }
        drop(progress);
        println!("Policies are disarmed");
        Ok(ExitCode::SUCCESS)
    }
}

/// Says to what serves policies what is wanted. Where there is no Service, nobody is there to be told.
async fn annotate(cluster: &Cluster, service: &ObjectKey, value: Option<&str>) -> anyhow::Result<()> {
    relabel(cluster, service, &json!({}), &json!({ names::DISARMED: value })).await
}

/// Waits until the configurations are gone, and deletes them where nobody else does.
async fn gone(
    cluster: &Cluster,
    configurations: &[ObjectKey],
    progress: &mut Progress,
    patience: Duration,
) -> anyhow::Result<()> {
    let started = Instant::now();
    until(progress, patience, async || {
        for key in configurations {
            let Some(live) = cluster.read(key).await.map_err(explained)? else {
                continue;
            };
            if started.elapsed() > ABANDONED {
                let uid = object::text(&live, "/metadata/uid");
                cluster.delete(key, uid).await.map_err(explained)?;
            }
            return Ok(Some(format!("{key} to be deleted")));
        }
        Ok(None)
    })
    .await
}
