//! Windlass is installed by its manifests, upgraded, removed, and installed again. Its pods run on the node.

use std::{path::Path, time::Duration};

use anyhow::Context;
use serde_json::{Value, json};
use windlass::commands::manifests;

use super::{guard::writes, split_processes, traffic};
use crate::{
    command::argument,
    load::Load,
    operator, request, sample,
    steps::{self, check, get, is_rolled_out, list, serving_certificates, succeed, until},
    test_cluster::{TestCluster, path_of},
};

/// The manifests that docs/removal.md deletes for a temporary removal, in this order.
const TEMPORARY_REMOVAL: [&str; 4] = ["guard.yaml", "deployment.yaml", "certificates.yaml", "rbac.yaml"];

/// The time limit for replacing or terminating all pods of Windlass. Terminating pods still answer late
/// requests.
const ROLLOUT_LIMIT: Duration = Duration::from_secs(150);

/// The collection with the pods of Windlass.
const PODS: &str = "/api/v1/namespaces/windlass-system/pods";

/// The CA Secret of the guard.
const GUARD_KEYS: &str = "windlass-system.windlass";

/// The namespace of objects that no bundle contains.
const PLATFORM: &str = "platform";

/// The Secret of a certificate in that namespace.
const SECRET: &str = "/api/v1/namespaces/platform/secrets/hook-cert";

pub(super) async fn windlass_is_installed_upgraded_and_removed_without_a_failed_call(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    install(cluster, &manifests::image()).await?;
    install_sample(cluster).await?;
    let certified = split_processes::certified_service(cluster, PLATFORM).await?;
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;
    writes::wait_until_guarded(cluster).await?;

    tokio::select! {
        upgraded = install(cluster, operator::NEXT_IMAGE) => upgraded?,
        passed = writes::send_until_allowed(cluster) => passed?,
    }
    check_rotation_and_guard(cluster, &load)
        .await
        .context("after the upgrade")?;

    let keys = ca_secrets(cluster).await?;
    for file in TEMPORARY_REMOVAL {
        remove(cluster, &manifests::objects_of(file)?).await?;
    }
    wait_until_pods_end(cluster).await?;
    load.at_least(100).await?;
    let kept = self::ca_secrets(cluster).await?;
    anyhow::ensure!(kept == keys, "the keys before: {keys:?}; after: {kept:?}");

    install(cluster, &manifests::image()).await?;
    check_rotation_and_guard(cluster, &load)
        .await
        .context("installed again")?;
    let kept = self::ca_secrets(cluster).await?;
    anyhow::ensure!(kept == keys, "the keys before: {keys:?}; after: {kept:?}");
    traffic::finish(load).await?;

    cluster.command.succeed(&["uninstall", "sample"]).await?;
    remove_permanently(cluster).await?;
    let left = get(&cluster.client, SECRET).await?.unwrap_or_default();
    anyhow::ensure!(
        left["data"] == certified["data"],
        "the Secret before: {certified}; after: {left}"
    );
    Ok(())
}

/// Installs a bundle with the command: the pods of the manifests have no bundle folder.
pub(super) async fn install_sample(cluster: &TestCluster) -> anyhow::Result<()> {
    install_bundle(cluster, &sample::bundle("sample.v1")).await
}

/// Installs a bundle as `sample`, or upgrades to it, with the waits of a shipped Windlass.
pub(super) async fn install_bundle(cluster: &TestCluster, folder: &Path) -> anyhow::Result<()> {
    install_as(cluster, "sample", sample::NAMESPACE, folder).await
}

/// Like [`install_bundle`], with another name and namespace.
pub(super) async fn install_as(
    cluster: &TestCluster,
    name: &str,
    namespace: &str,
    folder: &Path,
) -> anyhow::Result<()> {
    let folder = argument(folder)?;
    let arguments = [
        "install",
        folder,
        "--name",
        name,
        "--namespace",
        namespace,
        "--timeout",
        "15m",
    ];
    cluster.command.succeed(&arguments).await.map(drop)
}

/// Applies the manifests as `kubectl apply --server-side` does, with `image` and short waits, and waits until
/// all pods are ready.
pub(super) async fn install(cluster: &TestCluster, image: &str) -> anyhow::Result<()> {
    let mut objects = manifests::objects()?;
    for object in &mut objects {
        if object["kind"] == "Deployment" {
            let container = &mut object["spec"]["template"]["spec"]["containers"][0];
            container["image"] = json!(image);
            let arguments = container["args"].as_array_mut().context("no arguments")?;
            arguments.extend(cluster.operator.arguments.iter().map(|word| json!(word)));
        }
    }
    anyhow::ensure!(
        roll_out(cluster, objects).await? == 2,
        "the manifests do not contain two Deployments"
    );
    Ok(())
}

/// Applies objects and waits until their Deployments are rolled out. Returns the number of Deployments.
pub(super) async fn roll_out(cluster: &TestCluster, objects: Vec<Value>) -> anyhow::Result<usize> {
    let mut deployments = Vec::new();
    for object in objects {
        let path = path_of(&object);
        if object["kind"] == "Deployment" {
            deployments.push(path.clone());
        }
        let answer = request::apply(&cluster.client, &path, "kubectl", false, &object).await?;
        anyhow::ensure!([200, 201].contains(&answer.code), "{path}: {answer}");
    }
    for path in &deployments {
        until(&format!("{path} is rolled out"), ROLLOUT_LIMIT, async || {
            let live = get(&cluster.client, path).await?.unwrap_or_default();
            Ok(check(is_rolled_out(&live), || live["status"].to_string()))
        })
        .await?;
    }
    Ok(deployments.len())
}

/// Checks that Windlass rotates a CA and serves the guard.
async fn check_rotation_and_guard(cluster: &TestCluster, load: &Load) -> anyhow::Result<()> {
    sample::rotate(cluster, "ca").await?;
    writes::wait_until_guarded(cluster).await?;
    load.at_least(50).await
}

/// Returns the uids of the CA Secrets by name, without the guard's. That one is deleted with its Service if
/// the controllers still run, and then issued again.
async fn ca_secrets(cluster: &TestCluster) -> anyhow::Result<serde_json::Map<String, Value>> {
    let path = format!("/api/v1/namespaces/{}/secrets", operator::NAMESPACE);
    let secrets = list(&cluster.client, &path).await?;
    let secrets = secrets
        .into_iter()
        .filter(|secret| secret["data"]["current.key"].is_string())
        .filter(|secret| secret["metadata"]["name"] != GUARD_KEYS);
    let keys: serde_json::Map<_, _> = secrets
        .map(|secret| {
            let name = request::text(&secret, "/metadata/name").to_owned();
            (name, secret["metadata"]["uid"].clone())
        })
        .collect();
    anyhow::ensure!(!keys.is_empty(), "there are no CA Secrets");
    Ok(keys)
}

async fn remove(cluster: &TestCluster, objects: &[Value]) -> anyhow::Result<()> {
    for object in objects {
        let path = path_of(object);
        let answer = request::send(&cluster.client, "DELETE", &path, None).await?;
        anyhow::ensure!([200, 202, 404].contains(&answer.code), "{path}: {answer}");
    }
    Ok(())
}

async fn wait_until_pods_end(cluster: &TestCluster) -> anyhow::Result<()> {
    until("all pods of Windlass are deleted", ROLLOUT_LIMIT, async || {
        let pods = list(&cluster.client, PODS).await?;
        Ok(check(pods.is_empty(), || format!("{} pods", pods.len())))
    })
    .await
}

/// Follows docs/removal.md after all bundles are uninstalled.
async fn remove_permanently(cluster: &TestCluster) -> anyhow::Result<()> {
    let client = &cluster.client;
    for name in ["windlass", "windlass-certificates"] {
        let path = format!("/apis/apps/v1/namespaces/windlass-system/deployments/{name}");
        succeed(client, "PATCH", &path, Some(&json!({"spec": {"replicas": 0}}))).await?;
    }
    wait_until_pods_end(cluster).await?;
    for namespace in [PLATFORM, operator::NAMESPACE] {
        let collection = serving_certificates(namespace);
        for certificate in list(client, &collection).await? {
            let path = format!("{collection}/{}", request::text(&certificate, "/metadata/name"));
            let orphan = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Orphan"});
            succeed(client, "DELETE", &path, Some(&orphan)).await?;
            steps::gone(client, &path).await?;
        }
    }
    remove(cluster, &manifests::objects()?).await?;
    for object in manifests::objects()? {
        let path = path_of(&object);
        until(&format!("{path} is deleted"), ROLLOUT_LIMIT, async || {
            let live = get(client, &path).await?;
            Ok(check(live.is_none(), || {
                live.map(|live| live["status"].to_string()).unwrap_or_default()
            }))
        })
        .await?;
    }
    Ok(())
}
