//! What customizations say of objects of a bundle.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};
use windlass::commands::manifests;

use super::{foreign, rights};
use crate::{
    request::text,
    sample,
    steps::{
        self, BUNDLE_DEPLOYMENTS, PATIENCE, check, condition, conditions, current, delete, get, ready,
        succeed, until,
    },
    test_cluster::TestCluster,
};

const SCALER: &str = "/apis/autoscaling.k8s.io/v1/namespaces/own-system/verticalpodautoscalers/sizes";
const OWN: &str = "/apis/windlass.dev/v1alpha1/bundledeployments/own";
const INTERPRETATIONS: &str = "/apis/interpretation.windlass.dev/v1alpha1/resourceinterpretations";
const KARMADAS: &str = "/apis/config.karmada.io/v1alpha1/resourceinterpretercustomizations";

/// Makes the cluster serve the kinds of customizations, and one that is not known natively.
async fn define(cluster: &TestCluster) -> anyhow::Result<()> {
    let scalers = foreign::crd(
        "autoscaling.k8s.io/v1",
        "VerticalPodAutoscaler",
        "verticalpodautoscalers",
        true,
    );
    foreign::define(&cluster.client, &scalers).await?;
    for crd in manifests::customization_crds() {
        foreign::define(&cluster.client, &crd).await?;
    }
    Ok(())
}

/// The bundle with a VerticalPodAutoscaler.
fn bundle(cluster: &TestCluster, revision: &str) -> anyhow::Result<PathBuf> {
    let bundle = cluster.add_bundle(&sample::bundle("own-namespace"), revision)?;
    let scaler = json!({
        "apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler",
        "metadata": {"name": "sizes", "annotations": {"example.com/revision": revision}},
        "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "sample-operator"}},
    });
    fs::write(bundle.join("manifests/scaler.json"), scaler.to_string())?;
    Ok(bundle)
}

/// Customizes VerticalPodAutoscalers by a condition.
fn by_condition() -> Value {
    json!({
        "apiVersion": "interpretation.windlass.dev/v1alpha1", "kind": "ResourceInterpretation",
        "metadata": {"name": "scalers"},
        "spec": {
            "targets": [{"apiVersion": "autoscaling.k8s.io/v1", "kinds": ["VerticalPodAutoscaler"]}],
            "customizations": {"healthInterpretation": {"condition": {"type": "RecommendationProvided"}}},
        },
    })
}

/// Customizes them by a script.
fn by_script(script: &str) -> Value {
    json!({
        "apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterCustomization",
        "metadata": {"name": "scalers"},
        "spec": {
            "target": {"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler"},
            "customizations": {"healthInterpretation": {"luaScript": script}},
        },
    })
}

/// Says of the VerticalPodAutoscaler how it is, as what makes recommendations does.
async fn say(cluster: &TestCluster, status: &str) -> anyhow::Result<()> {
    let status = json!({"status": {"phase": "Watching", "conditions": [
        {"type": "RecommendationProvided", "status": status, "reason": "Samples", "message": "3 of 8 samples"},
    ]}});
    let path = format!("{SCALER}?fieldManager=recommender");
    succeed(&cluster.client, "PATCH", &path, Some(&status)).await?;
    Ok(())
}

/// Waits until Available has that status, for a reason, in these words.
pub(super) async fn available(
    cluster: &TestCluster,
    status: &str,
    reason: &str,
    words: &[&str],
) -> anyhow::Result<Value> {
    let what = format!("Available is {status} for {reason}: {words:?}");
    until(&what, PATIENCE, async || {
        let object = get(&cluster.client, OWN).await?.unwrap_or_default();
        let said = current(&object, "Available", status);
        let is_said = said.is_some_and(|said| {
            text(said, "/reason") == reason && words.iter().all(|word| text(said, "/message").contains(word))
        });
        Ok(if is_said {
            Ok(object)
        } else {
            Err(conditions(&object))
        })
    })
    .await
}

pub(super) async fn a_bundle_is_available_when_its_custom_resource_is_healthy(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    define(cluster).await?;
    succeed(client, "POST", INTERPRETATIONS, Some(&by_condition())).await?;
    let _operator = cluster.operator.start()?;
    bundle(cluster, "one")?;
    succeed(client, "POST", BUNDLE_DEPLOYMENTS, Some(&rights::own("one"))).await?;
    let scaler = "VerticalPodAutoscaler own-system/sizes";
    let waiting = available(cluster, "False", "ObjectUnhealthy", &[scaler, "no status yet"]).await?;
    for step in ["Accepted", "Installed", "Armed", "Migrated", "Progressing"] {
        anyhow::ensure!(
            current(&waiting, step, "True").is_some(),
            "{step} waits, too: {}",
            conditions(&waiting)
        );
    }
    anyhow::ensure!(
        waiting["status"]["installed"]["revision"] == 1,
        "it is not installed: {waiting}"
    );
    say(cluster, "False").await?;
    let words = [scaler, "ResourceInterpretation scalers"];
    available(cluster, "False", "ObjectUnhealthy", &words).await?;
    say(cluster, "True").await?;
    ready(client, "own", PATIENCE).await?;

    // What is installed may become unhealthy, and another revision follows all the same.
    say(cluster, "False").await?;
    available(cluster, "False", "ObjectUnhealthy", &words).await?;
    bundle(cluster, "two")?;
    steps::set_source(client, "own", "two").await?;
    until("the next revision is installed", PATIENCE, async || {
        let object = get(client, OWN).await?.unwrap_or_default();
        let is_installed = object["status"]["installed"]["revision"] == 2;
        Ok(check(is_installed, || conditions(&object)))
    })
    .await?;
    available(cluster, "False", "ObjectUnhealthy", &words).await?;

    // Nobody is asked any more.
    let switch = |to: &str| json!({"spec": {"interpretation": to}});
    succeed(client, "PATCH", OWN, Some(&switch("Disabled"))).await?;
    ready(client, "own", PATIENCE).await?;
    succeed(client, "PATCH", OWN, Some(&switch("Enabled"))).await?;
    available(cluster, "False", "ObjectUnhealthy", &words).await?;
    say(cluster, "True").await?;
    ready(client, "own", PATIENCE).await?;

    // Of customizations of one object Karmada's counts, as it is now.
    let broken = by_script("function InterpretHealth(observedObj)\n  error('not today')\nend");
    succeed(client, "POST", KARMADAS, Some(&broken)).await?;
    let words = [scaler, "ResourceInterpreterCustomization scalers", "not today"];
    let unknown = available(cluster, "Unknown", "HealthUnknown", &words).await?;
    anyhow::ensure!(
        current(&unknown, "Armed", "True").is_some(),
        "{}",
        conditions(&unknown)
    );
    let path = format!("{KARMADAS}/scalers");
    let phase = by_script(
        "function InterpretHealth(observedObj)\n  return observedObj.status.phase == 'Watching'\nend",
    );
    succeed(client, "PATCH", &path, Some(&phase)).await?;
    ready(client, "own", PATIENCE).await?;
    succeed(client, "PATCH", &path, Some(&broken)).await?;
    condition(client, OWN, "Available", "Unknown", PATIENCE).await?;
    delete(client, &path).await?;
    ready(client, "own", PATIENCE).await?;
    Ok(())
}
