//! `windlass policy disarm`: removes the webhooks of policies before their server is removed.

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
    cluster::{ClusterArgs, OperatorArgs, explain_error},
    object_changes::{change_metadata, wait_for_propagation, wait_until},
};
use crate::terminal::{Progress, ProgressFormat};

const AFTER_HELP: &str =
    "Run it before you turn policies off or remove Windlass with kubectl; the Helm chart does it. Policies
are kept. Returns when every API server has had time to observe the change.";

/// Removes the webhooks of policies, so that writes no longer depend on the policy server.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// Arm disarmed policies again, once their servers are proven.
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

/// Time for the policy controllers to delete the configurations. After that this command deletes them.
const ABANDONED: Duration = Duration::from_secs(10);

impl Args {
    /// Disarms policies, or lets the operator arm them again.
    ///
    /// # Errors
    ///
    /// When the cluster rejects a write, or the configurations are not deleted.
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        let cluster = self.cluster.connect().await?;
        let name = AdmissionService::POLICIES.name;
        let service = kinds::SERVICE.object(Some(&self.operator.operator_namespace), name);
        if self.undo {
            let found = cluster.read(&service).await.map_err(explain_error)?;
            found.with_context(|| {
                format!("{service} not found: turn policies on, see manifests/policies.yaml")
            })?;
            annotate(&cluster, &service, None).await?;
            println!("Policies will be armed again once their servers are proven");
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
        wait_until_deleted(&cluster, &configurations, &mut progress, patience).await?;
        wait_for_propagation(&mut progress, "that policies have no webhooks").await;
        for configuration in &configurations {
            if cluster
                .read(configuration)
                .await
                .map_err(explain_error)?
                .is_some()
            {
                bail!(
                    "{configuration} was created again: another client may have changed the annotation {} of {service}",
                    names::DISARMED
                );
            }
        }
        drop(progress);
        println!("Policies are disarmed");
        Ok(ExitCode::SUCCESS)
    }
}

/// Sets the annotation for the policy controllers, if their Service exists.
async fn annotate(cluster: &Cluster, service: &ObjectKey, value: Option<&str>) -> anyhow::Result<()> {
    change_metadata(cluster, service, &json!({}), &json!({ names::DISARMED: value })).await
}

/// Waits until the configurations are deleted, and deletes them after [`GRACE`].
async fn wait_until_deleted(
    cluster: &Cluster,
    configurations: &[ObjectKey],
    progress: &mut Progress,
    patience: Duration,
) -> anyhow::Result<()> {
    let started = Instant::now();
    wait_until(progress, patience, async || {
        for key in configurations {
            let Some(live) = cluster.read(key).await.map_err(explain_error)? else {
                continue;
            };
            if started.elapsed() > ABANDONED {
                let uid = object::text(&live, "/metadata/uid");
                cluster.delete(key, uid).await.map_err(explain_error)?;
            }
            return Ok(Some(format!("{key} to be deleted")));
        }
        Ok(None)
    })
    .await
}
