//! Windlass as its manifests and its chart ship it, through every operation, with servers that use
//! controller-runtime.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use windlass::commands::manifests;

use super::{everyday::EverydayUse, installation, traffic};
use crate::{
    busy_machine::BusyMachine,
    helm,
    load::Load,
    operator,
    sample::{self, NAMESPACE},
    steps::{self, check, get, is_rolled_out, succeed, until},
    test_cluster::TestCluster,
};

/// The variable with the number of rounds; 20 in a full run.
const ROUNDS: &str = "WINDLASS_E2E_ROUNDS";

/// The chart in this repository.
const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../charts/windlass");

/// The time limit of an operation with the waits that users have.
const PATIENCE: Duration = Duration::from_secs(900);

/// How many more calls each operation is followed by.
const CALLS: u64 = 50;

/// What installs Windlass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Package {
    Manifests,
    Chart,
}

pub(super) async fn fails_no_call(cluster: &TestCluster, package: Package) -> anyhow::Result<()> {
    let _busy = BusyMachine::start()?;
    package.install(cluster).await?;
    for (release, versions) in [
        ("sample.v1", "apiVersions: [v1, v1beta1]\n"),
        ("sample.v2", "apiVersions: [v2, v1, v1beta1]\n"),
    ] {
        let folder = cluster.bundle(release)?;
        let image = |name: &str, tag: &str| format!("image: {name}:{tag}\n");
        let tag = release.trim_start_matches("sample.");
        let server = image(sample::CONTROLLER_RUNTIME_IMAGE, release);
        cluster.edit(&folder, &image(sample::IMAGE, tag), &server)?;
        // As kubebuilder scaffolds them: the API server converts objects of other versions.
        cluster.edit(&folder, versions, "apiVersions: [v1]\n")?;
    }
    for round in 1..=steps::number_in(ROUNDS, 1)? {
        run_round(cluster, round).await?;
    }
    Ok(())
}

impl Package {
    async fn install(self, cluster: &TestCluster) -> anyhow::Result<()> {
        match self {
            Self::Manifests => {
                installation::roll_out(cluster, manifests::objects()?).await?;
            }
            Self::Chart => {
                let arguments = [
                    "install",
                    "windlass",
                    CHART,
                    "--take-ownership",
                    "--wait",
                    "--timeout",
                    "15m",
                ];
                helm::succeed(cluster, operator::NAMESPACE, &arguments).await?;
            }
        }
        Ok(())
    }
}

async fn run_round(cluster: &TestCluster, round: u64) -> anyhow::Result<()> {
    install(cluster, "sample.v1").await?;
    let load = traffic::start_watched(cluster).await?;
    let everyday = EverydayUse::start(cluster);
    load.at_least(CALLS).await?;
    rotate(cluster, &load, "leaf").await?;
    rotate(cluster, &load, "ca").await?;
    install(cluster, "sample.v2").await?;
    load.at_least(CALLS).await?;
    cluster
        .command
        .succeed(&["rollback", "sample", "--timeout", "15m"])
        .await?;
    load.at_least(CALLS).await?;
    install(cluster, "sample.v2").await?;
    load.at_least(CALLS).await?;
    restart(cluster).await?;
    load.at_least(CALLS).await?;
    let everyday = everyday.finish().await?;
    let report = traffic::finish(load).await?;
    report.check_served(traffic::NEWEST, &[false, true, false, true])?;
    tracing::info!(
        round,
        requests = report.requests,
        seconds = report.took.as_secs_f32(),
        gap = ?report.longest_gap,
        everyday,
        "No call failed"
    );
    let visits = traffic::start_visits(cluster).await?;
    let uninstall = ["uninstall", "sample", "--timeout", "15m"];
    until("the sample is uninstalled", PATIENCE, async || {
        let output = cluster.command.run(&uninstall, |_| {}).await?;
        // The object of a visit stops a removal, which an administrator then repeats.
        let is_used = output.stderr.contains("have stored objects");
        anyhow::ensure!(output.succeeded || is_used, "uninstall failed: {}", output.stderr);
        Ok(check(output.succeeded, || output.stderr))
    })
    .await?;
    visits.finish().await.map(drop)
}

async fn install(cluster: &TestCluster, release: &str) -> anyhow::Result<()> {
    installation::install_bundle(cluster, &cluster.operator.bundle_dir.join(release)).await
}

async fn rotate(cluster: &TestCluster, load: &Load, what: &str) -> anyhow::Result<()> {
    steps::rotate(&cluster.client, NAMESPACE, sample::CERTIFICATE, what, PATIENCE).await?;
    load.at_least(CALLS).await
}

/// Restarts both Deployments of Windlass, as `kubectl rollout restart` does.
async fn restart(cluster: &TestCluster) -> anyhow::Result<()> {
    let restarted = json!({"kubectl.kubernetes.io/restartedAt": Timestamp::now().to_string()});
    let patch = json!({"spec": {"template": {"metadata": {"annotations": restarted}}}});
    for name in [operator::ACCOUNT, operator::CERTIFICATES_ACCOUNT] {
        let path = format!(
            "/apis/apps/v1/namespaces/{}/deployments/{name}",
            operator::NAMESPACE
        );
        succeed(&cluster.client, "PATCH", &path, Some(&patch)).await?;
        until(&format!("{name} is rolled out"), PATIENCE, async || {
            let live = get(&cluster.client, &path).await?.unwrap_or_default();
            Ok(check(is_rolled_out(&live), || live["status"].to_string()))
        })
        .await?;
    }
    Ok(())
}
