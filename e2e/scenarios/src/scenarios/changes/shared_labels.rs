//! Two bundles in one namespace whose Deployments have the same pod labels.

use serde_json::json;

use super::{
    outcome::UpgradeOutcome,
    round_trip::{AFTERWARDS, set},
    variant::replace_all,
};
use crate::{
    load::{Clients, Load},
    resource::{Expectation, Resource},
    sample,
    scenarios::traffic,
    steps::{self, BUNDLE_DEPLOYMENTS, delete},
    test_cluster::TestCluster,
};

/// The BundleDeployment of the second bundle.
const GADGETS: &str = "gadgets";

/// The namespace of its objects.
const TRAFFIC: &str = "traffic-gadgets";

/// The number of workers that call its webhooks and the pause of each, together about 130 requests a second.
const WORKERS: usize = 4;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(30);

/// Installs, upgrades and removes one bundle while the other runs and is upgraded.
pub(in super::super) async fn bundles_with_equal_pod_labels_receive_only_their_own_calls(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    let [older, newer] = [gadgets(cluster, false)?, gadgets(cluster, true)?];
    sample::install(cluster, "sample.v1").await?;
    cluster.bundle("sample.v2")?;
    let widgets = traffic::start_at(
        cluster,
        traffic::NAMESPACE,
        &["v1", "v1beta1"],
        Expectation::Admitted,
    )
    .await?;
    widgets.at_least(100).await?;

    let mut outcome = UpgradeOutcome::default();
    let folder = cluster.operator.bundle_dir.join(&older);
    let installed = steps::install(&cluster.client, GADGETS, sample::NAMESPACE, &folder).await;
    outcome.record_step("the install of the gadgets", installed.map(drop), &widgets);
    traffic::create_namespace(cluster, TRAFFIC).await?;
    let used = start_gadgets(cluster);
    used.at_least(100).await?;
    outcome.record_requests("calls while both are installed", &widgets.lap());
    let (one, other) = tokio::join!(set(cluster, "sample", "sample.v2"), set(cluster, GADGETS, &newer));
    tokio::time::sleep(AFTERWARDS).await;
    outcome.record_step("both upgrades, of the widgets", one, &widgets);
    outcome.record_step("both upgrades, of the gadgets", other, &used);
    let report = used.stop().await;
    let removed = delete(&cluster.client, &format!("{BUNDLE_DEPLOYMENTS}/{GADGETS}")).await;
    outcome.record_step("the removal of the gadgets", removed, &widgets);

    let one = widgets.stop().await;
    tracing::info!(
        requests = one.requests,
        failed = one.failed,
        of_the_other = report.requests,
        failed_of_the_other = report.failed,
        "Sent"
    );
    outcome.check()
}

/// Writes a bundle of another package with the sample's pod labels, and returns its folder.
fn gadgets(cluster: &TestCluster, newer: bool) -> anyhow::Result<String> {
    let name = if newer { "gadgets-newer" } else { "gadgets-older" };
    let folder = cluster.add_bundle(&sample::bundle("conversion-only"), name)?;
    let manifests = folder.join("manifests");
    for field in ["serviceAccountName", "deploymentName", "- name"] {
        let line = |value: &str| format!("{field}: {value}\n");
        replace_all(&manifests, &line("sample-operator"), &line("gadget-operator"))?;
    }
    if newer {
        let next = "version: 2.0.0\n  replaces: conversion-only.v1.0.0\n";
        for (from, to) in [
            ("name: conversion-only.v1.0.0\n", "name: conversion-only.v2.0.0\n"),
            ("version: 1.0.0\n", next),
            ("sample-operator:v1\n", "sample-operator:v2\n"),
        ] {
            replace_all(&manifests, from, to)?;
        }
    }
    Ok(name.to_owned())
}

fn start_gadgets(cluster: &TestCluster) -> Load {
    let mut example = sample::widget("v1");
    example["kind"] = json!("Gadget");
    let gadgets = Resource {
        plural: "gadgets".to_owned(),
        example,
        ..Resource::widgets(&["v1", "v1beta1"], Expectation::Converted)
    };
    Load::start(
        &cluster.client,
        TRAFFIC,
        &[gadgets],
        WORKERS,
        PAUSE,
        Clients::Strict,
    )
}
