//! Windlass itself: installed by its manifests, upgraded, removed, installed again. Its pods run on the node.

use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};
use windlass::commands::manifests;

use super::{guard::writes, halves, traffic};
use crate::{
    command::argument,
    load::Load,
    operator, request, sample,
    steps::{self, check, get, is_rolled_out, list, serving_certificates, succeed, until},
    test_cluster::{TestCluster, path_of},
};

/// What docs/removal.md says to delete for a while, in this order.
const FOR_A_WHILE: [&str; 4] = ["guard.yaml", "deployment.yaml", "certificates.yaml", "rbac.yaml"];

/// How long all pods of Windlass may take to be replaced, or to end: those that end answer whoever still asks them.
const LONG: Duration = Duration::from_secs(150);

/// The pods of Windlass.
const PODS: &str = "/api/v1/namespaces/windlass-system/pods";

/// The Secret of the CA that signs for the guard.
const GUARD_KEYS: &str = "windlass-system.windlass";

/// The namespace of what no bundle brings.
const PLATFORM: &str = "platform";

/// The Secret of a certificate there.
const SECRET: &str = "/api/v1/namespaces/platform/secrets/hook-cert";

pub(super) async fn windlass_itself_comes_changes_and_goes_without_a_failed_call(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    install(cluster, &manifests::image()).await?;
    install_sample(cluster).await?;
    let certified = halves::certified_service(cluster, PLATFORM).await?;
    let load = traffic::start(cluster, &["v1", "v1beta1"]).await?;
    load.at_least(50).await?;
    writes::until_asked(cluster).await?;

    tokio::select! {
        upgraded = install(cluster, operator::NEXT_IMAGE) => upgraded?,
        passed = writes::until_one_passes(cluster) => passed?,
    }
    works(cluster, &load).await.context("after the upgrade")?;

    let keys = keys(cluster).await?;
    for file in FOR_A_WHILE {
        remove(cluster, &manifests::objects_of(file)?).await?;
    }
    pods_are_gone(cluster).await?;
    load.at_least(100).await?;
    let kept = self::keys(cluster).await?;
    anyhow::ensure!(kept == keys, "the keys were {keys:?}, and are {kept:?}");

    install(cluster, &manifests::image()).await?;
    works(cluster, &load).await.context("installed again")?;
    let kept = self::keys(cluster).await?;
    anyhow::ensure!(kept == keys, "the keys were {keys:?}, and are {kept:?}");
    traffic::finish(load).await?;

    cluster.command.succeed(&["uninstall", "sample"]).await?;
    for_good(cluster).await?;
    let left = get(&cluster.client, SECRET).await?.unwrap_or_default();
    anyhow::ensure!(
        left["data"] == certified["data"],
        "the Secret was {certified}, and is {left}"
    );
    Ok(())
}

/// Installs a bundle by the command: the pods of the manifests have no folder of bundles.
pub(super) async fn install_sample(cluster: &TestCluster) -> anyhow::Result<()> {
    let folder = sample::bundle("sample.v1");
    let folder = argument(&folder)?;
    let arguments = [
        "install",
        folder,
        "--namespace",
        "sample-system",
        "--name",
        "sample",
    ];
    cluster.command.succeed(&arguments).await.map(|_| ())
}

/// Applies the manifests as `kubectl apply --server-side` does, with pods of `image` that wait no longer than this cluster
/// needs, until all of them are ready.
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
    anyhow::ensure!(roll_out(cluster, objects).await? == 2, "not both Deployments");
    Ok(())
}

/// Applies objects until the Deployments among them are ready; how many these are.
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
        until(&format!("{path} is rolled out"), LONG, async || {
            let live = get(&cluster.client, path).await?.unwrap_or_default();
            Ok(check(is_rolled_out(&live), || live["status"].to_string()))
        })
        .await?;
    }
    Ok(deployments.len())
}

/// Windlass rotates what it has installed, and answers for the guard.
async fn works(cluster: &TestCluster, load: &Load) -> anyhow::Result<()> {
    sample::rotate(cluster, "ca").await?;
    writes::until_asked(cluster).await?;
    load.at_least(50).await
}

/// What is issued from, by the name of its Secret: the uid. The guard's own is left out: it goes with its Service if that is seen
/// before the controllers end, and is made anew.
async fn keys(cluster: &TestCluster) -> anyhow::Result<serde_json::Map<String, Value>> {
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
    anyhow::ensure!(!keys.is_empty(), "there are no keys");
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

async fn pods_are_gone(cluster: &TestCluster) -> anyhow::Result<()> {
    until("no pod of Windlass is left", LONG, async || {
        let pods = list(&cluster.client, PODS).await?;
        Ok(check(pods.is_empty(), || format!("{} pods", pods.len())))
    })
    .await
}

/// The steps of docs/removal.md after all bundles are uninstalled.
async fn for_good(cluster: &TestCluster) -> anyhow::Result<()> {
    let client = &cluster.client;
    for name in ["windlass", "windlass-certificates"] {
        let path = format!("/apis/apps/v1/namespaces/windlass-system/deployments/{name}");
        succeed(client, "PATCH", &path, Some(&json!({"spec": {"replicas": 0}}))).await?;
    }
    pods_are_gone(cluster).await?;
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
        until(&format!("{path} is gone"), LONG, async || {
            let live = get(client, &path).await?;
            Ok(check(live.is_none(), || {
                live.map(|live| live["status"].to_string()).unwrap_or_default()
            }))
        })
        .await?;
    }
    Ok(())
}
