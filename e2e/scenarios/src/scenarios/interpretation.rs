//! Customizations that interpret objects of a bundle.

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

/// Creates the CRDs of customizations, and of a kind without native interpretation.
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

/// A customization of VerticalPodAutoscalers with a condition.
fn condition_customization() -> Value {
    json!({
        "apiVersion": "interpretation.windlass.dev/v1alpha1", "kind": "ResourceInterpretation",
        "metadata": {"name": "scalers"},
        "spec": {
            "targets": [{"apiVersion": "autoscaling.k8s.io/v1", "kinds": ["VerticalPodAutoscaler"]}],
            "customizations": {"healthInterpretation": {"condition": {"type": "RecommendationProvided"}}},
        },
    })
}

/// A customization of VerticalPodAutoscalers with a script.
fn script_customization(script: &str) -> Value {
    json!({
        "apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterCustomization",
        "metadata": {"name": "scalers"},
        "spec": {
            "target": {"apiVersion": "autoscaling.k8s.io/v1", "kind": "VerticalPodAutoscaler"},
            "customizations": {"healthInterpretation": {"luaScript": script}},
        },
    })
}

/// Sets the status of the VerticalPodAutoscaler, as its recommender does.
async fn set_status(cluster: &TestCluster, status: &str) -> anyhow::Result<()> {
    let status = json!({"status": {"phase": "Watching", "conditions": [
        {"type": "RecommendationProvided", "status": status, "reason": "Samples", "message": "3 of 8 samples"},
    ]}});
    let path = format!("{SCALER}?fieldManager=recommender");
    succeed(&cluster.client, "PATCH", &path, Some(&status)).await?;
    Ok(())
}

/// Waits until Available has this status and reason, and a message with all of `words`.
pub(super) async fn wait_for_available(
    cluster: &TestCluster,
    status: &str,
    reason: &str,
    words: &[&str],
) -> anyhow::Result<Value> {
    let what = format!("Available is {status} for {reason}: {words:?}");
    until(&what, PATIENCE, async || {
        let object = get(&cluster.client, OWN).await?.unwrap_or_default();
        let said = current(&object, "Available", status);
        let is_reported = said.is_some_and(|said| {
            text(said, "/reason") == reason && words.iter().all(|word| text(said, "/message").contains(word))
        });
        Ok(if is_reported {
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
    succeed(client, "POST", INTERPRETATIONS, Some(&condition_customization())).await?;
    let _operator = cluster.operator.start()?;
    bundle(cluster, "one")?;
    succeed(
        client,
        "POST",
        BUNDLE_DEPLOYMENTS,
        Some(&rights::bundle_deployment("one")),
    )
    .await?;
    let scaler = "VerticalPodAutoscaler own-system/sizes";
    let waiting = wait_for_available(cluster, "False", "ObjectUnhealthy", &[scaler, "no status yet"]).await?;
    for step in ["Accepted", "Installed", "Armed", "Migrated", "Progressing"] {
        anyhow::ensure!(
            current(&waiting, step, "True").is_some(),
            "{step} waits too: {}",
            conditions(&waiting)
        );
    }
    anyhow::ensure!(
        waiting["status"]["installed"]["revision"] == 1,
        "it is not installed: {waiting}"
    );
    set_status(cluster, "False").await?;
    let words = [scaler, "ResourceInterpretation scalers"];
    wait_for_available(cluster, "False", "ObjectUnhealthy", &words).await?;
    set_status(cluster, "True").await?;
    ready(client, "own", PATIENCE).await?;

    // An installed object becomes unhealthy, and the next revision is installed nevertheless.
    set_status(cluster, "False").await?;
    wait_for_available(cluster, "False", "ObjectUnhealthy", &words).await?;
    bundle(cluster, "two")?;
    steps::set_source(client, "own", "two").await?;
    until("the next revision is installed", PATIENCE, async || {
        let object = get(client, OWN).await?.unwrap_or_default();
        let is_installed = object["status"]["installed"]["revision"] == 2;
        Ok(check(is_installed, || conditions(&object)))
    })
    .await?;
    wait_for_available(cluster, "False", "ObjectUnhealthy", &words).await?;

    // Interpretation is disabled.
    let switch = |to: &str| json!({"spec": {"interpretation": to}});
    succeed(client, "PATCH", OWN, Some(&switch("Disabled"))).await?;
    ready(client, "own", PATIENCE).await?;
    succeed(client, "PATCH", OWN, Some(&switch("Enabled"))).await?;
    wait_for_available(cluster, "False", "ObjectUnhealthy", &words).await?;
    set_status(cluster, "True").await?;
    ready(client, "own", PATIENCE).await?;

    // Karmada's customization takes precedence over Windlass's for the same object, and its latest version
    // applies.
    let broken = script_customization("function InterpretHealth(observedObj)\n  error('not today')\nend");
    succeed(client, "POST", KARMADAS, Some(&broken)).await?;
    let words = [scaler, "ResourceInterpreterCustomization scalers", "not today"];
    let unknown = wait_for_available(cluster, "Unknown", "HealthUnknown", &words).await?;
    anyhow::ensure!(
        current(&unknown, "Armed", "True").is_some(),
        "{}",
        conditions(&unknown)
    );
    let path = format!("{KARMADAS}/scalers");
    let phase = script_customization(
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
