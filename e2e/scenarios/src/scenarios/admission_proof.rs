//! Webhooks with wrong answers are found before they are armed, while the previous revision keeps serving.

use anyhow::Context;
use serde_json::{Value, json};

use super::{
    traffic,
    upgrade::{add_broken_bundle, keep_load, serving_state, wait_for_no_canary, wait_until_stopped},
};
use crate::{
    request::text,
    sample,
    steps::{
        self, BUNDLE_DEPLOYMENTS, MUTATING, PATIENCE, VALIDATING, check, conditions, current, get, list,
        ready, set_source, succeed, until,
    },
    test_cluster::TestCluster,
};

/// The answers of the new revision on its admission paths, and a part of the condition's message.
const FAULTS: [(&str, &str); 4] = [
    ("admission-not-found", "HTTP 404: no such path"),
    (
        "admission-error",
        "HTTP 500: failing, as requested by --fault admission-error",
    ),
    (
        "admission-garbage",
        "answered /validate with a body that is not JSON",
    ),
    ("admission-silent", "did not answer within 10s"),
];

/// The installed webhooks.
const INSTALLED: &str = "labelSelector=windlass.dev/bundle-deployment";

pub(super) async fn a_revision_with_failing_admission_webhooks_is_never_armed(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;
    let before = (serving_state(cluster).await?, armed_webhooks(cluster).await?);
    for (fault, words) in FAULTS {
        let broken = add_broken_bundle(cluster, fault)?;
        sample::set_source(cluster, &broken).await?;
        let status = wait_until_stopped(cluster, "CanaryFailed", words).await?;
        tracing::info!(fault, words = conditions(&status), "Stopped");
        // The message names the webhook and its path.
        wait_until_stopped(
            cluster,
            "CanaryFailed",
            "admission webhook vwidget.sample.windlass.dev",
        )
        .await?;
        wait_until_stopped(cluster, "CanaryFailed", " on /validate: ").await?;
        keep_load(&load).await?;
        anyhow::ensure!(
            (serving_state(cluster).await?, armed_webhooks(cluster).await?) == before,
            "the revision with --fault {fault} changed the previous one"
        );
        sample::set_source(cluster, "sample.v1").await?;
        ready(&cluster.client, "sample", PATIENCE).await?;
        wait_for_no_canary(cluster).await?;
        load.lap()
            .check()
            .with_context(|| format!("the revision with --fault {fault} was rejected"))?;
    }
    traffic::finish(load).await?;
    Ok(())
}

pub(super) async fn a_bundle_without_conversion_is_tested_before_it_is_armed(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    cluster.bundle("own-namespace")?;
    let mut object = steps::bundle_deployment("own", "own-system", "own-namespace");
    object["spec"]["watchNamespaces"] = json!(["own-system"]);
    succeed(&cluster.client, "POST", BUNDLE_DEPLOYMENTS, Some(&object)).await?;
    ready(&cluster.client, "own", PATIENCE).await?;
    let before = armed_webhooks(cluster).await?;
    copy_as_newer(cluster, "own-namespace", "admission-error")?;
    set_source(&cluster.client, "own", "own-namespace-newer").await?;
    wait_not_ready(cluster, "own", "CanaryFailed", "answered /validate with HTTP 500").await?;
    wait_not_ready(
        cluster,
        "own",
        "CanaryFailed",
        "the test request was to CREATE the Trinket of the bundle's alm-examples",
    )
    .await?;
    anyhow::ensure!(
        armed_webhooks(cluster).await? == before,
        "the webhooks were changed"
    );
    set_source(&cluster.client, "own", "own-namespace").await?;
    ready(&cluster.client, "own", PATIENCE).await?;
    Ok(())
}

/// A conversion that loses a field is rejected, allowed by an exception, and accepted in the next revision.
pub(super) async fn a_lossy_conversion_is_accepted_with_an_exception(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    copy_as_newer(cluster, "conversion-only", "lose-field")?;
    let object = steps::bundle_deployment("gadgets", "gadgets-system", "conversion-only-newer");
    succeed(&cluster.client, "POST", BUNDLE_DEPLOYMENTS, Some(&object)).await?;
    wait_not_ready(cluster, "gadgets", "NotConverting", "spec.size was lost").await?;
    wait_not_ready(cluster, "gadgets", "NotConverting", "spec.conversionExceptions").await?;
    let path = format!("{BUNDLE_DEPLOYMENTS}/gadgets");
    let exceptions = |list: Value| json!({"spec": {"conversionExceptions": list}});
    let allowed =
        exceptions(json!([{"crd": "gadgets.sample.windlass.dev", "field": "spec.size", "reason": "old"}]));
    succeed(&cluster.client, "PATCH", &path, Some(&allowed)).await?;
    ready(&cluster.client, "gadgets", PATIENCE).await?;
    let next = cluster.add_bundle(
        &cluster.operator.bundle_dir.join("conversion-only-newer"),
        "conversion-only-next",
    )?;
    cluster.edit(&next, "1.0.1", "1.0.2")?;
    let mut change = exceptions(Value::Null);
    change["spec"]["source"] = json!({"directory": {"path": "conversion-only-next"}});
    succeed(&cluster.client, "PATCH", &path, Some(&change)).await?;
    let upgraded = ready(&cluster.client, "gadgets", PATIENCE).await?;
    anyhow::ensure!(
        text(&upgraded, "/status/installed/version") == "1.0.2",
        "the status names {}",
        upgraded["status"]["installed"]
    );
    Ok(())
}

/// A generated test object that a webhook cannot convert proves nothing; the first stored object does.
pub(super) async fn a_generated_object_that_does_not_convert_blocks_no_install(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    let folder = copy_as_newer(cluster, "conversion-only", "refuse-conversion")?;
    cluster.edit(&folder, "\"kind\": \"Gadget\"", "\"kind\": \"Another\"")?;
    let object = steps::bundle_deployment("gadgets", "gadgets-system", "conversion-only-newer");
    succeed(&cluster.client, "POST", BUNDLE_DEPLOYMENTS, Some(&object)).await?;
    ready(&cluster.client, "gadgets", PATIENCE).await?;
    traffic::create_namespace(cluster, traffic::NAMESPACE).await?;
    let gadget = json!({
        "apiVersion": "sample.windlass.dev/v1", "kind": "Gadget", "metadata": {"name": "first"}, "spec": {"size": 7},
    });
    let gadgets = format!(
        "/apis/{}/v1/namespaces/{}/gadgets",
        sample::GROUP,
        traffic::NAMESPACE
    );
    succeed(&cluster.client, "POST", &gadgets, Some(&gadget)).await?;
    wait_not_ready(
        cluster,
        "gadgets",
        "NotConverting",
        "as requested by --fault refuse-conversion",
    )
    .await
}

/// Copies a bundle of version 1.0.0 as `NAME-newer`, with the next version and a fault.
fn copy_as_newer(cluster: &TestCluster, name: &str, fault: &str) -> anyhow::Result<std::path::PathBuf> {
    let folder = cluster.add_bundle(&sample::bundle(name), &format!("{name}-newer"))?;
    cluster.edit(&folder, "1.0.0", "1.0.1")?;
    let image = format!("image: {}:v1", sample::IMAGE);
    let faulty = format!("{image}\n                args: [--fault={fault}]");
    cluster.edit(&folder, &image, &faulty)?;
    Ok(folder)
}

/// The armed webhooks: client configuration and number of writes.
async fn armed_webhooks(cluster: &TestCluster) -> anyhow::Result<Vec<Value>> {
    let mut armed = Vec::new();
    for collection in [VALIDATING, MUTATING] {
        let configurations = list(&cluster.client, &format!("{collection}?{INSTALLED}")).await?;
        armed.extend(configurations.into_iter().map(|configuration| {
            json!([
                configuration["metadata"]["uid"],
                configuration["metadata"]["generation"]
            ])
        }));
    }
    anyhow::ensure!(!armed.is_empty(), "no webhook is armed");
    Ok(armed)
}

/// Waits until a BundleDeployment is not ready for `reason`, with these words in the message.
async fn wait_not_ready(cluster: &TestCluster, name: &str, reason: &str, words: &str) -> anyhow::Result<()> {
    let path = format!("{BUNDLE_DEPLOYMENTS}/{name}");
    until(
        &format!("{name} is not ready: {reason}: {words}"),
        PATIENCE,
        async || {
            let object = get(&cluster.client, &path)
                .await?
                .context("no BundleDeployment")?;
            let is_reported = current(&object, "Ready", "False").is_some_and(|condition| {
                condition["reason"] == reason && text(condition, "/message").contains(words)
            });
            Ok(check(is_reported, || conditions(&object)))
        },
    )
    .await
}
