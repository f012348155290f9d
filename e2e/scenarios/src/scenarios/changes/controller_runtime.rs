//! Repeated upgrades of a webhook server that is built with controller-runtime and shuts down like one.

use super::{
    bursts::Bursts,
    outcome::UpgradeOutcome,
    round_trip::{AFTERWARDS, set},
};
use crate::{
    busy_machine::BusyMachine, resource::Expectation, sample, scenarios::traffic, steps,
    test_cluster::TestCluster,
};

/// The variable with the number of upgrades; 20 in a full run.
const ROUNDS: &str = "WINDLASS_E2E_ROUNDS";

/// The default number of upgrades.
const FEW_ROUNDS: u64 = 3;

const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v2"];

pub(in super::super) async fn a_controller_runtime_server_is_upgraded_repeatedly(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    let rounds = steps::number_in(ROUNDS, FEW_ROUNDS)?;
    let first = release(cluster, 1)?;
    let folder = cluster.operator.bundle_dir.join(&first);
    steps::install(&cluster.client, "sample", sample::NAMESPACE, &folder).await?;
    let load = traffic::start_at(cluster, traffic::NAMESPACE, &VERSIONS, Expectation::Admitted).await?;
    let bursts = Bursts::start(cluster).await?;
    load.at_least(100).await?;
    let _busy = BusyMachine::start()?;

    let mut outcome = UpgradeOutcome::default();
    for round in 1..=rounds {
        let upgraded = set(cluster, "sample", &release(cluster, round + 1)?).await;
        tokio::time::sleep(AFTERWARDS).await;
        let lap = load.lap();
        tracing::info!(round, requests = lap.requests, failed = lap.failed, "Upgraded");
        outcome.record_requests(&format!("calls during upgrade {round}"), &lap);
        if let Err(error) = upgraded {
            outcome.record_problem(&format!("upgrade {round}: {error:#}"));
            break;
        }
    }
    let report = load.stop().await;
    let bursts = bursts.finish().await?;
    tracing::info!(
        rounds,
        requests = report.requests,
        failed = report.failed,
        a_second = VERSIONS
            .map(|version| format!("{version}: {:.1}", report.rate_at(version)))
            .join(", "),
        at_once = bursts.requests,
        failed_at_once = bursts.failures.len(),
        "Sent"
    );
    outcome.record_failures("concurrent reads", bursts.requests, &bursts.failures);
    outcome.check()
}

/// Writes the sample's release with this number, with the webhook paths that kubebuilder scaffolds, and
/// returns its folder.
fn release(cluster: &TestCluster, number: u64) -> anyhow::Result<String> {
    let name = format!("controller-runtime.v{number}");
    let folder = cluster.add_bundle(&sample::bundle("sample.v2"), &name)?;
    let probes = "livenessProbe: {httpGet: {path: /healthz, port: 8081}, initialDelaySeconds: 15, periodSeconds: 20}\n                \
                  readinessProbe: {httpGet: {path: /readyz, port: 8081}, initialDelaySeconds: 5, periodSeconds: 10}";
    let (image, replaces) = (sample::IMAGE, "  replaces: sample.v1\n");
    for (from, to) in [
        (
            "name: sample.v2\n".to_owned(),
            format!("name: sample.v{number}\n"),
        ),
        (
            "  version: 2.0.0\n".to_owned(),
            format!("  version: {number}.0.0\n"),
        ),
        (
            replaces.to_owned(),
            if number == 1 {
                String::new()
            } else {
                format!("  replaces: sample.v{}\n", number - 1)
            },
        ),
        (
            format!("image: {image}:v2\n"),
            format!(
                "image: {}:v2\n                {probes}\n",
                sample::CONTROLLER_RUNTIME_IMAGE
            ),
        ),
        (
            "                env:\n".to_owned(),
            format!("                env:\n                - {{name: RELEASE, value: \"{number}\"}}\n"),
        ),
        (
            "webhookPath: /mutate\n".to_owned(),
            "webhookPath: /mutate-sample-windlass-dev-v1-widget\n".to_owned(),
        ),
        (
            "webhookPath: /validate\n".to_owned(),
            "webhookPath: /validate-sample-windlass-dev-v1-widget\n".to_owned(),
        ),
        (
            "apiVersions: [v2, v1, v1beta1]\n".to_owned(),
            "apiVersions: [v1]\n".to_owned(),
        ),
    ] {
        cluster.edit(&folder, &from, &to)?;
    }
    Ok(name)
}
