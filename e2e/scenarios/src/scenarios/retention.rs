//! Fields of a bundle's Deployment that other clients set, and a customization retains.

use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use windlass::commands::manifests;

use super::{foreign, idle, rights};
use crate::{
    proxy::Proxy,
    request::text,
    sample,
    steps::{
        self, BUNDLE_DEPLOYMENTS, PATIENCE, check, conditions, current, get, is_rolled_out, ready, succeed,
        until,
    },
    test_cluster::TestCluster,
};

const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/own-system/deployments/sample-operator";
const OWN: &str = "/apis/windlass.dev/v1alpha1/bundledeployments/own";
const INTERPRETATIONS: &str = "/apis/interpretation.windlass.dev/v1alpha1/resourceinterpretations";
const KARMADAS: &str = "/apis/config.karmada.io/v1alpha1/resourceinterpretercustomizations";

/// How long nothing may be written after an autoscaler's write.
const QUIET: Duration = Duration::from_secs(3);

/// The maximum number of writes of a Deployment in an upgrade: pause, resume, and giving up the paused field.
const MOST_WRITES: usize = 4;

async fn define_customizations(cluster: &TestCluster) -> anyhow::Result<()> {
    for crd in manifests::customization_crds() {
        foreign::define(&cluster.client, &crd).await?;
    }
    Ok(())
}

/// Adds the bundle with pods that differ by revision.
fn add_bundle(cluster: &TestCluster, revision: &str) -> anyhow::Result<()> {
    let bundle = cluster.add_bundle(&sample::bundle("own-namespace"), revision)?;
    let env = "                env:\n";
    let variable = format!("                - name: REVISION\n                  value: {revision}\n");
    cluster.edit(&bundle, env, &format!("{env}{variable}"))
}

async fn install(cluster: &TestCluster) -> anyhow::Result<()> {
    add_bundle(cluster, "one")?;
    let object = rights::bundle_deployment("one");
    succeed(&cluster.client, "POST", BUNDLE_DEPLOYMENTS, Some(&object)).await?;
    ready(&cluster.client, "own", PATIENCE).await?;
    Ok(())
}

async fn deployment(cluster: &TestCluster) -> anyhow::Result<Value> {
    get(&cluster.client, DEPLOYMENT)
        .await?
        .context("the Deployment was deleted")
}

fn deployment_writes(proxy: &Proxy) -> usize {
    let write = format!("PATCH {DEPLOYMENT}");
    proxy.log().iter().filter(|line| **line == write).count()
}

/// Scales as an autoscaler does, and checks that the operator does not write the Deployment.
async fn scale(cluster: &TestCluster, proxy: &Proxy, replicas: i64) -> anyhow::Result<()> {
    idle::wait_until_idle(proxy).await?;
    let before = deployment_writes(proxy);
    let path = format!("{DEPLOYMENT}/scale?fieldManager=autoscaler");
    let scale = json!({"spec": {"replicas": replicas}});
    succeed(&cluster.client, "PATCH", &path, Some(&scale)).await?;
    let begun = Instant::now();
    while begun.elapsed() < QUIET {
        let seen = deployment(cluster).await?;
        anyhow::ensure!(
            seen["spec"]["replicas"] == replicas,
            "{}",
            seen["spec"]["replicas"]
        );
        sleep(Duration::from_millis(100)).await;
    }
    anyhow::ensure!(
        deployment_writes(proxy) == before,
        "the operator reverted what an autoscaler set"
    );
    ready(&cluster.client, "own", PATIENCE).await?;
    Ok(())
}

/// Upgrades, and checks that the number of replicas never changes.
async fn upgrade(cluster: &TestCluster, proxy: &Proxy, revision: &str, replicas: i64) -> anyhow::Result<()> {
    let before = deployment_writes(proxy);
    add_bundle(cluster, revision)?;
    steps::set_source(&cluster.client, "own", revision).await?;
    until(&format!("{revision} is installed"), PATIENCE, async || {
        let seen = deployment(cluster).await?;
        anyhow::ensure!(
            seen["spec"]["replicas"] == replicas,
            "{revision} set replicas to {}",
            seen["spec"]["replicas"]
        );
        let object = get(&cluster.client, OWN).await?.unwrap_or_default();
        let is_ready = current(&object, "Ready", "True").is_some() && seen.to_string().contains(revision);
        Ok(check(is_ready, || conditions(&object)))
    })
    .await?;
    idle::wait_until_idle(proxy).await?;
    let written = deployment_writes(proxy) - before;
    anyhow::ensure!(
        (1..=MOST_WRITES).contains(&written),
        "the upgrade to {revision} wrote the Deployment {written} times"
    );
    Ok(())
}

pub(super) async fn replicas_that_an_autoscaler_sets_are_kept_across_upgrades(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    define_customizations(cluster).await?;
    let script = "function Retain(desiredObj, observedObj)\n  desiredObj.spec.replicas = observedObj.spec.replicas\n  return desiredObj\nend";
    let customization = json!({
        "apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterCustomization",
        "metadata": {"name": "replicas"},
        "spec": {
            "target": {"apiVersion": "apps/v1", "kind": "Deployment"},
            "customizations": {"retention": {"luaScript": script}},
        },
    });
    succeed(&cluster.client, "POST", KARMADAS, Some(&customization)).await?;
    let (operator, proxy) = cluster.proxied(&cluster.operator).await?;
    let _operator = operator.start()?;
    install(cluster).await?;
    for (revision, replicas) in [("two", 3), ("three", 4), ("four", 3)] {
        scale(cluster, &proxy, replicas).await?;
        upgrade(cluster, &proxy, revision, replicas).await?;
    }
    Ok(())
}

/// Returns a container that another client injects in addition to `manager`: a server on its own port.
fn proxy_container(manager: &Value) -> Value {
    let mut proxy = manager.clone();
    proxy["name"] = "proxy".into();
    proxy["args"] = json!(["--port=8443", "--health-port=8444"]);
    if let Some(fields) = proxy.as_object_mut() {
        fields.retain(|field, _| !["ports", "readinessProbe", "lifecycle"].contains(&field.as_str()));
    }
    proxy
}

pub(super) async fn injected_containers_are_kept_across_an_upgrade(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    define_customizations(cluster).await?;
    let (operator, proxy) = cluster.proxied(&cluster.operator).await?;
    let _operator = operator.start()?;
    install(cluster).await?;
    let interpretation = json!({
        "apiVersion": "interpretation.windlass.dev/v1alpha1", "kind": "ResourceInterpretation",
        "metadata": {"name": "proxies"},
        "spec": {
            "targets": [{"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "own-system"}],
            "customizations": {"retention": {"fields": [r#".spec.template.spec.containers[?(@.name=="proxy")]"#]}},
        },
    });
    succeed(&cluster.client, "POST", INTERPRETATIONS, Some(&interpretation)).await?;
    idle::wait_until_idle(&proxy).await?;
    let mut containers = deployment(cluster).await?["spec"]["template"]["spec"]["containers"].clone();
    let injected = proxy_container(&containers[0]);
    containers
        .as_array_mut()
        .context("there are no containers")?
        .push(injected);
    let injected = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    let path = format!("{DEPLOYMENT}?fieldManager=injector");
    let before = deployment_writes(&proxy);
    succeed(&cluster.client, "PATCH", &path, Some(&injected)).await?;
    wait_for_proxy(cluster).await?;
    ready(&cluster.client, "own", PATIENCE).await?;
    idle::wait_until_idle(&proxy).await?;
    anyhow::ensure!(
        deployment_writes(&proxy) == before,
        "the operator reverted the injected container"
    );
    upgrade(cluster, &proxy, "two", 2).await?;
    wait_for_proxy(cluster).await?;
    let seen = deployment(cluster).await?;
    let managers = seen["metadata"]["managedFields"].as_array();
    let owner = managers.into_iter().flatten().find(|entry| {
        entry["fieldsV1"]["f:spec"]
            .to_string()
            .contains(r#"{\"name\":\"proxy\"}"#)
    });
    let owner = owner.map(|entry| text(entry, "/manager"));
    anyhow::ensure!(
        owner == Some("injector"),
        "the owner of the injected container is {owner:?}"
    );
    Ok(())
}

/// Waits until every pod has the injected container.
async fn wait_for_proxy(cluster: &TestCluster) -> anyhow::Result<()> {
    until("every pod has the injected container", PATIENCE, async || {
        let seen = deployment(cluster).await?;
        let containers = seen["spec"]["template"]["spec"]["containers"].as_array();
        let mut containers = containers.into_iter().flatten();
        let is_there = containers.any(|container| container["name"] == "proxy");
        Ok(check(is_there && is_rolled_out(&seen), || {
            format!("{} {}", seen["spec"]["template"], seen["status"])
        }))
    })
    .await
}
