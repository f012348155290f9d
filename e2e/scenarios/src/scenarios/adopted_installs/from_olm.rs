//! An operator of OLM v0 is adopted while OLM runs.

use std::path::{Path, PathBuf};

use anyhow::Context;
use kube::Client;
use serde_json::{Value, json};
use windlass_adoption::{ADOPTED_FROM, olm::CsvObjects};
use windlass_object::{names, object};

use super::{
    super::{changes::BundleChange, traffic},
    steps as adoption_steps,
};
use crate::{
    command::Command,
    olm::{self, Olm, csvs, owner_labels, owner_reference},
    proxy::Proxy,
    request::text,
    sample::{self, NAMESPACE},
    steps::{self, CRDS, MUTATING, PATIENCE, VALIDATING, check, get, succeed, until},
    test_cluster::TestCluster,
};

/// The ClusterServiceVersion of the sample.
const CSV: &str = "sample.v1";

/// The argument of `--adopt-from`.
const SOURCE: &str = "olm/sample.v1";

pub(in super::super) async fn an_operator_of_olm_is_adopted_without_a_failed_call(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let bundle = draining_bundle(cluster, "v1")?;
    olm::definitions(client).await?;
    let olm = Olm::start(client);
    install_with_olm(client, &bundle).await?;
    let _operator = cluster.operator.start()?;
    let load = traffic::start(cluster, &adoption_steps::VERSIONS).await?;
    load.at_least(200).await?;

    failed_preparation_changes_nothing(cluster, &bundle).await?;
    olm_creates_webhook_configurations_again(cluster, &bundle).await?;
    adoption_steps::adopt_bundle(cluster, &bundle, SOURCE, &adoption_steps::KILLS).await?;
    load.at_least(200).await?;
    // OLM's webhook configurations call the Service with its name, also while upgrades move those of
    // Windlass.
    let next = draining_bundle(cluster, "v2")?;
    cluster.command.succeed(&adoption_steps::install(&next)?).await?;
    load.at_least(200).await?;
    cluster.command.succeed(&["rollback", "sample"]).await?;
    load.at_least(200).await?;
    adoption_steps::confirm(cluster, &adoption_steps::KILLS).await?;
    adoption_steps::check_adoption_removed(client).await?;
    steps::gone(client, &csv_path()).await?;
    load.at_least(200).await?;
    sample::settled(cluster).await?;
    // OLM's CA is not trusted any longer, and all remaining callers trust the new one.
    sample::rotate(cluster, "ca").await?;
    load.at_least(200).await?;
    let report = load.stop().await;
    traffic::check_sent_at(&report, &adoption_steps::VERSIONS)?;
    report.check()?;
    let did = olm.stop().await;
    tracing::info!(
        requests = report.requests,
        failed = report.failed,
        "Adopted from OLM under load: {did:#?}"
    );
    anyhow::ensure!(
        did.last()
            .is_some_and(|line| line.contains("deletion is handled")),
        "OLM changed more: {did:#?}"
    );
    check_marks_removed(client).await
}

/// Returns a bundle of the sample whose servers drain before they end. OLM's webhook configurations call the
/// Service whose pods an upgrade replaces. A client cannot distinguish an idle connection that a server
/// closes from one with a request on it.
fn draining_bundle(cluster: &TestCluster, version: &str) -> anyhow::Result<PathBuf> {
    let bundle = cluster.bundle(&format!("sample.{version}"))?;
    let image = format!("image: {}:{version}", sample::IMAGE);
    let drains = format!("{image}\n                args: [\"--linger=2s\"]");
    cluster.edit(&bundle, &image, &drains)?;
    Ok(bundle)
}

/// The servers cannot be copied: OLM keeps everything, and the attempt leaves nothing.
async fn failed_preparation_changes_nothing(cluster: &TestCluster, bundle: &Path) -> anyhow::Result<()> {
    let client = &cluster.client;
    let mut other = sample::server("sample-operator-kept", "other", 0);
    other["metadata"]["namespace"] = NAMESPACE.into();
    let deployments = olm::collection("Deployment", NAMESPACE);
    succeed(client, "POST", &deployments, Some(&other)).await?;
    let elsewhere = BundleChange::WebhookPaths.newer(cluster)?;
    let elsewhere = cluster.operator.bundle_dir.join(elsewhere);
    for (bundle, words) in [
        (bundle, "sample-operator-kept exists: rename it"),
        // OLM's webhook configurations would call a Service without endpoints.
        (&*elsewhere, "which the bundle does not serve"),
    ] {
        let install = [&adoption_steps::install(bundle)?[..], &["--adopt-from", SOURCE]].concat();
        let refused = cluster.command.run(&install, |_| {}).await?;
        let said = [refused.stdout, refused.stderr].concat();
        anyhow::ensure!(!refused.succeeded && said.contains(words), "{said}");
    }
    let csv = get(client, &csv_path())
        .await?
        .context("OLM has released the operator")?;
    anyhow::ensure!(
        text(&csv, "/status/phase") == "Succeeded" && csv["metadata"]["deletionTimestamp"].is_null(),
        "OLM has released the operator: {csv}"
    );
    cluster.command.succeed(&["adoption", "undo", "sample"]).await?;
    let path = format!("{deployments}/sample-operator-kept");
    succeed(client, "DELETE", &path, None).await?;
    steps::gone(client, &path).await?;
    adoption_steps::check_adoption_removed(client).await
}

/// A run is killed after OLM's labels are removed, and before the ClusterServiceVersion is deleted: OLM does
/// not find its webhook configurations any longer.
async fn olm_creates_webhook_configurations_again(
    cluster: &TestCluster,
    bundle: &Path,
) -> anyhow::Result<()> {
    let client = &cluster.client;
    let proxy = Proxy::open(client.clone()).await?;
    proxy.cut_before(&format!("DELETE {}", csv_path()));
    let interrupted = Command {
        kubeconfig: cluster.write("proxy.kubeconfig", &proxy.kubeconfig())?,
        ..cluster.command.clone()
    };
    let install = [&adoption_steps::install(bundle)?[..], &["--adopt-from", SOURCE]].concat();
    tokio::select! {
        output = interrupted.run(&install, |_| {}) => {
            anyhow::bail!("the run was not interrupted: {}, {:?}", output?.stderr, proxy.log())
        }
        () = proxy.closed() => {}
    }
    for collection in [VALIDATING, MUTATING] {
        until(
            "OLM has created a webhook configuration again",
            PATIENCE,
            async || {
                let there = steps::list(client, collection).await?;
                let is_marked = |live: &&Value| object::annotation(live, ADOPTED_FROM).is_some();
                let is_new = |live: &&Value| object::label(live, "olm.owner").is_some() && !is_marked(live);
                let is_done =
                    there.iter().any(|live| is_marked(&live)) && there.iter().any(|live| is_new(&live));
                Ok(check(is_done, || json!(there).to_string()))
            },
        )
        .await?;
    }
    Ok(())
}

fn csv_path() -> String {
    format!("{}/{CSV}", csvs(NAMESPACE))
}

/// Installs the sample as OLM's catalog operator does, and waits until olm-operator has processed it.
async fn install_with_olm(client: &Client, bundle: &Path) -> anyhow::Result<()> {
    let namespace = json!({"metadata": {"name": NAMESPACE}});
    succeed(client, "POST", "/api/v1/namespaces", Some(&namespace)).await?;
    let group = json!({"apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup",
        "metadata": {"name": "all", "namespace": NAMESPACE}, "spec": {}});
    let groups = format!("/apis/operators.coreos.com/v1/namespaces/{NAMESPACE}/operatorgroups");
    succeed(client, "POST", &groups, Some(&group)).await?;
    let mut crd = sample::manifest()?;
    let alongside = "operatorframework.io/installed-alongside-1f2e3d";
    crd["metadata"]["annotations"] = json!({alongside: format!("{NAMESPACE}/{CSV}")});
    crd["metadata"]["labels"] = json!({"olm.managed": "true"});
    succeed(client, "POST", CRDS, Some(&crd)).await?;
    let csv = manifest(bundle, "sample.clusterserviceversion.yaml")?;
    let csv = succeed(client, "POST", &csvs(NAMESPACE), Some(&csv)).await?.body;
    subscribe(client).await?;
    let reference = owner_reference(&csv);
    for (kind, name, data) in [
        ("ServiceAccount", "sample-operator", Value::Null),
        ("ConfigMap", "sample-operator-config", json!({"color": "blue"})),
    ] {
        let mut object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE,
            "labels": {"olm.managed": "true"}, "ownerReferences": [reference]}});
        if !data.is_null() {
            object["data"] = data;
        }
        succeed(client, "POST", &olm::collection(kind, NAMESPACE), Some(&object)).await?;
    }
    let api_version = "rbac.authorization.k8s.io/v1";
    let name = format!("{CSV}-2hxY7mZLlTxXNKeRMNhuTHNcK6");
    let permission = &csv["spec"]["install"]["spec"]["clusterPermissions"][0];
    let metadata = json!({"name": name, "labels": owner_labels(&csv)});
    let role = json!({"apiVersion": api_version, "kind": "ClusterRole", "metadata": metadata,
        "rules": permission["rules"]});
    let binding = json!({"apiVersion": api_version, "kind": "ClusterRoleBinding", "metadata": metadata,
        "subjects": [{"kind": "ServiceAccount", "name": "sample-operator", "namespace": NAMESPACE}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}});
    for object in [role, binding] {
        succeed(
            client,
            "POST",
            &olm::collection(text(&object, "/kind"), ""),
            Some(&object),
        )
        .await?;
    }
    until("OLM has installed it", PATIENCE, async || {
        let csv = get(client, &csv_path())
            .await?
            .context("no ClusterServiceVersion")?;
        Ok(check(text(&csv, "/status/phase") == "Succeeded", || {
            csv["status"].to_string()
        }))
    })
    .await
}

async fn subscribe(client: &Client) -> anyhow::Result<()> {
    let subscriptions = format!("/apis/operators.coreos.com/v1alpha1/namespaces/{NAMESPACE}/subscriptions");
    let subscription = json!({"apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
        "metadata": {"name": "sample", "namespace": NAMESPACE},
        "spec": {"name": "sample", "source": "catalog", "sourceNamespace": "olm", "channel": "stable"}});
    succeed(client, "POST", &subscriptions, Some(&subscription)).await?;
    let status = json!({"installedCSV": CSV, "currentCSV": CSV, "state": "AtLatestKnown",
        "lastUpdated": "2026-01-01T00:00:00Z"});
    let patch = json!({ "status": status });
    succeed(
        client,
        "PATCH",
        &format!("{subscriptions}/sample/status"),
        Some(&patch),
    )
    .await?;
    Ok(())
}

fn manifest(bundle: &Path, name: &str) -> anyhow::Result<Value> {
    let text = std::fs::read(bundle.join("manifests").join(name))?;
    let documents = windlass_object::yaml::documents(&text).map_err(anyhow::Error::msg)?;
    documents.into_iter().next().context("an empty manifest")
}

/// The objects of all kinds that may belong to the operator.
async fn operator_objects(client: &Client) -> anyhow::Result<Vec<Value>> {
    let mut objects = Vec::new();
    for (api_version, kind, namespace) in CsvObjects::kinds(NAMESPACE) {
        let path = olm::collection(kind, namespace.unwrap_or_default());
        let Some(found) = get(client, &path).await? else {
            continue;
        };
        for mut object in found["items"].as_array().cloned().unwrap_or_default() {
            object["apiVersion"] = api_version.into();
            object["kind"] = kind.into();
            objects.push(object);
        }
    }
    Ok(objects)
}

/// Checks that only objects of the bundle remain, without marks of OLM.
async fn check_marks_removed(client: &Client) -> anyhow::Result<()> {
    for live in operator_objects(client).await? {
        let is_ours = object::label(&live, names::BUNDLE_DEPLOYMENT).is_some()
            || object::label(&live, names::SERVING_CERTIFICATE).is_some();
        let metadata = &live["metadata"];
        let is_olms =
            object::label(&live, "olm.owner").is_some() || object::annotation(&live, ADOPTED_FROM).is_some();
        let name = text(&live, "/metadata/name");
        anyhow::ensure!(!is_olms, "still OLM's: {metadata}");
        anyhow::ensure!(is_ours || !name.contains("widget"), "left over: {metadata}");
    }
    Ok(())
}
