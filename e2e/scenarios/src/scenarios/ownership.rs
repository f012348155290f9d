//! Ownership of installed objects: copies, removed labels, deleted owners, replicas, and competing writers.

use std::{collections::BTreeMap, fs, time::Duration};

use anyhow::Context;
use serde_json::{Value, json};
use windlass_trust::injection::TargetKind;

use super::{foreign, rights};
use crate::{
    request::{self, text},
    sample::{self, NAMESPACE},
    steps::{
        self, BUNDLE_DEPLOYMENTS, CRDS, MUTATING, PATIENCE, VALIDATING, check, delete, get, gone, list,
        ready, serving_certificates, succeed, until,
    },
    test_cluster::TestCluster,
};

/// The label with the name of the BundleDeployment.
const LABEL: &str = "windlass.dev/bundle-deployment";

/// The annotation with the identity under which the object was applied.
const APPLIED_AS: &str = "windlass.dev/applied-as";

/// The suffix of the names of copies.
const COPY: &str = "-copy";

/// The namespace of restored objects.
const RESTORED: &str = "restored";

/// The ConfigMap in the bundle of the sample.
const CONFIG_MAP: &str = "/api/v1/namespaces/sample-system/configmaps/sample-operator-config";

/// How long no unexpected change may happen.
const QUIET: Duration = Duration::from_secs(5);

/// Returns an object as a user copies it: without the fields that the API server sets.
fn plain_copy(object: &Value) -> Value {
    let mut copy = object.clone();
    let metadata = &object["metadata"];
    copy["metadata"] = json!({
        "name": format!("{}{COPY}", text(metadata, "/name")),
        "labels": metadata["labels"], "annotations": metadata["annotations"],
    });
    if let Some(fields) = copy.as_object_mut() {
        fields.remove("status");
    }
    match text(object, "/kind") {
        "Service" => {
            let spec = copy["spec"].as_object_mut();
            spec.into_iter()
                .for_each(|spec| spec.retain(|field, _| field == "ports"));
        }
        // The copy has no pods; they would match the selector of the original.
        "Deployment" => copy["spec"]["replicas"] = json!(0),
        "ServingCertificate" => copy["spec"]["secretName"] = json!("copied-cert"),
        // The name must contain the API group.
        "APIService" => copy["spec"]["group"] = json!(format!("{}{COPY}", text(object, "/spec/group"))),
        _ => {}
    }
    copy
}

/// Creates a copy, and returns its path and uid.
async fn create_copy(
    cluster: &TestCluster,
    collection: &str,
    copy: &Value,
) -> anyhow::Result<(String, Value)> {
    let created = succeed(&cluster.client, "POST", collection, Some(copy))
        .await?
        .body;
    let metadata = &created["metadata"];
    Ok((
        format!("{collection}/{}", text(metadata, "/name")),
        metadata["uid"].clone(),
    ))
}

/// Restores an object into another namespace as backup tools do: first the object, then its managed fields.
async fn restore_copy(
    cluster: &TestCluster,
    collection: &str,
    object: &Value,
) -> anyhow::Result<(String, Value)> {
    let mut plain = plain_copy(object);
    plain["metadata"]["name"] = object["metadata"]["name"].clone();
    let (path, uid) = create_copy(cluster, collection, &plain).await?;
    let managers = json!({"metadata": {"managedFields": object["metadata"]["managedFields"]}});
    let restored = succeed(&cluster.client, "PATCH", &path, Some(&managers))
        .await?
        .body;
    let ours = restored["metadata"]["managedFields"]
        .to_string()
        .contains("windlass-install");
    anyhow::ensure!(
        ours,
        "{path} was restored without the managed fields of Windlass: {restored}"
    );
    Ok((path, uid))
}

/// Copies every object of the collections that has the owner's label, and returns the paths and uids of the
/// copies.
async fn copy_all(
    cluster: &TestCluster,
    collections: &[String],
    owner: &str,
) -> anyhow::Result<BTreeMap<String, Value>> {
    let mut copies = BTreeMap::new();
    for collection in collections {
        let labelled = list(
            &cluster.client,
            &format!("{collection}?labelSelector={LABEL}={owner}"),
        )
        .await?;
        anyhow::ensure!(!labelled.is_empty(), "{collection} contains no object of {owner}");
        for mut object in labelled {
            // Items of lists may lack a kind.
            let path = format!("{collection}/{}", text(&object, "/metadata/name"));
            object = get(&cluster.client, &path).await?.context("gone")?;
            let (path, uid) = create_copy(cluster, collection, &plain_copy(&object)).await?;
            copies.insert(path, uid);
            if collection.contains("/own-system/") {
                let elsewhere = collection.replace("/own-system/", &format!("/{RESTORED}/"));
                let (path, uid) = restore_copy(cluster, &elsewhere, &object).await?;
                copies.insert(path, uid);
            }
        }
    }
    Ok(copies)
}

async fn check_copies(cluster: &TestCluster, copies: &BTreeMap<String, Value>) -> anyhow::Result<()> {
    for (path, uid) in copies {
        let live = get(&cluster.client, path).await?;
        let live = live.with_context(|| format!("the copy {path} was deleted"))?;
        anyhow::ensure!(live["metadata"]["uid"] == *uid, "the copy {path} was recreated");
    }
    Ok(())
}

/// Deletes the copies that call servers of the bundle; they would block the removal.
async fn delete_callers(cluster: &TestCluster, copies: &mut BTreeMap<String, Value>) -> anyhow::Result<()> {
    for path in copies.keys().cloned().collect::<Vec<_>>() {
        let copy = get(&cluster.client, &path).await?.context("gone")?;
        if TargetKind::from_object(&copy).is_some() {
            delete(&cluster.client, &path).await?;
            copies.remove(&path);
        }
    }
    Ok(())
}

pub(super) async fn copies_of_installed_objects_are_not_managed(cluster: &TestCluster) -> anyhow::Result<()> {
    let kinds = rights::every_kind();
    for bundled in &kinds {
        bundled.define(cluster).await?;
    }
    let namespace = json!({"metadata": {"name": RESTORED}});
    succeed(&cluster.client, "POST", "/api/v1/namespaces", Some(&namespace)).await?;
    let _operator = cluster.operator.start()?;
    rights::add_bundle(cluster, &kinds, "one")?;
    succeed(
        &cluster.client,
        "POST",
        BUNDLE_DEPLOYMENTS,
        Some(&rights::bundle_deployment("one")),
    )
    .await?;
    ready(&cluster.client, "own", PATIENCE).await?;
    let mut collections: Vec<_> = kinds.iter().map(rights::Bundled::collection).collect();
    collections.extend([VALIDATING.to_owned(), MUTATING.to_owned()]);
    collections.push("/apis/apps/v1/namespaces/own-system/deployments".to_owned());
    collections.push(serving_certificates("own-system"));
    let mut copies = copy_all(cluster, &collections, "own").await?;
    tokio::time::sleep(QUIET).await;
    check_copies(cluster, &copies).await?;
    rights::add_bundle(cluster, &kinds, "two")?;
    steps::set_source(&cluster.client, "own", "two").await?;
    ready(&cluster.client, "own", PATIENCE).await?;
    check_copies(cluster, &copies).await?;
    delete_callers(cluster, &mut copies).await?;
    delete(&cluster.client, &format!("{BUNDLE_DEPLOYMENTS}/own")).await?;
    for kind in &kinds {
        gone(&cluster.client, &kind.path()).await?;
    }
    check_copies(cluster, &copies).await
}

pub(super) async fn a_removed_label_is_restored(cluster: &TestCluster) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    for path in [CONFIG_MAP, sample::SERVICE, sample::DEPLOYMENT] {
        let before = get(&cluster.client, path).await?.context("not installed")?;
        let mut plain = before.clone();
        if let Some(metadata) = plain["metadata"].as_object_mut() {
            metadata.retain(|field, _| ["name", "namespace"].contains(&field.as_str()));
        }
        succeed(
            &cluster.client,
            "PUT",
            &format!("{path}?fieldManager=kubectl-replace"),
            Some(&plain),
        )
        .await?;
        until(
            &format!("{path} has its label and annotation again"),
            PATIENCE,
            async || {
                let now = get(&cluster.client, path).await?.context("gone")?;
                let (was, is) = (&before["metadata"], &now["metadata"]);
                let marks = |of: &Value| {
                    (
                        of["labels"][LABEL].clone(),
                        of["annotations"][APPLIED_AS].clone(),
                        of["uid"].clone(),
                    )
                };
                Ok(check(marks(was) == marks(is), || is.to_string()))
            },
        )
        .await?;
        ready(&cluster.client, "sample", PATIENCE).await?;
    }
    Ok(())
}

pub(super) async fn objects_of_a_deleted_bundle_deployment_are_taken_over(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let operator = cluster.operator.start()?;
    steps::install(&cluster.client, "first", NAMESPACE, &cluster.bundle("sample.v1")?).await?;
    let before = get(&cluster.client, sample::DEPLOYMENT)
        .await?
        .context("not installed")?;
    operator.kill().await?;
    let path = format!("{BUNDLE_DEPLOYMENTS}/first");
    succeed(&cluster.client, "DELETE", &path, None).await?;
    let by_force = json!({"metadata": {"finalizers": null}});
    succeed(&cluster.client, "PATCH", &path, Some(&by_force)).await?;
    gone(&cluster.client, &path).await?;
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    let after = get(&cluster.client, sample::DEPLOYMENT).await?.context("gone")?;
    anyhow::ensure!(
        after["metadata"]["uid"] == before["metadata"]["uid"]
            && after["metadata"]["labels"][LABEL] == "sample",
        "{}",
        after["metadata"]
    );
    // The new BundleDeployment owns it completely, so its deletion deletes the Deployment.
    delete(&cluster.client, sample::BUNDLE_DEPLOYMENT).await?;
    gone(&cluster.client, sample::DEPLOYMENT).await
}

pub(super) async fn replicas_that_another_client_sets_are_kept(cluster: &TestCluster) -> anyhow::Result<()> {
    let (operator, proxy) = cluster.proxied(&cluster.operator).await?;
    let _operator = operator.start()?;
    cluster.bundle("sample.v1")?;
    let mut object = steps::bundle_deployment("sample", NAMESPACE, "sample.v1");
    object["spec"]["config"] = json!({"windlass": {"replicas": 2}});
    succeed(&cluster.client, "POST", BUNDLE_DEPLOYMENTS, Some(&object)).await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    wait_for_replicas(cluster, 2).await?;
    let scale = format!("{}/scale?fieldManager=kubectl", sample::DEPLOYMENT);
    succeed(
        &cluster.client,
        "PATCH",
        &scale,
        Some(&json!({"spec": {"replicas": 3}})),
    )
    .await?;
    wait_for_replicas(cluster, 3).await?;
    let path = sample::BUNDLE_DEPLOYMENT;
    let touch = json!({"metadata": {"annotations": {"example.com/touched": "once"}}});
    succeed(&cluster.client, "PATCH", path, Some(&touch)).await?;
    tokio::time::sleep(QUIET).await;
    wait_for_replicas(cluster, 3).await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    let write = format!("PATCH {}", sample::DEPLOYMENT);
    let writes = proxy.log().iter().filter(|line| **line == write).count();
    anyhow::ensure!(
        writes <= 2,
        "the Deployment was written {writes} times; expected are its creation and one write to stop managing the replicas"
    );
    cluster.bundle("sample.v2")?;
    sample::set_source(cluster, "sample.v2").await?;
    ready(&cluster.client, "sample", PATIENCE).await?;
    wait_for_replicas(cluster, 3).await
}

/// Waits until the Deployment of the sample has this number of replicas, all of them ready.
async fn wait_for_replicas(cluster: &TestCluster, expected: i64) -> anyhow::Result<()> {
    until(&format!("there are {expected} replicas"), PATIENCE, async || {
        let deployment = get(&cluster.client, sample::DEPLOYMENT).await?.context("gone")?;
        let is = |pointer| deployment.pointer(pointer) == Some(&json!(expected));
        let all = is("/spec/replicas") && is("/status/readyReplicas");
        Ok(check(all, || {
            format!("{} {}", deployment["spec"]["replicas"], deployment["status"])
        }))
    })
    .await
}

pub(super) async fn an_object_in_another_version_than_stored_is_applied_once_and_deleted(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let mut crd = foreign::crd(
        "console.openshift.io/v1",
        "ConsolePlugin",
        "consoleplugins",
        false,
    );
    let versions = crd["spec"]["versions"].as_array_mut().context("no versions")?;
    versions.push(foreign::version("v1alpha1", false));
    foreign::define(&cluster.client, &crd).await?;
    let (operator, proxy) = cluster.proxied(&cluster.operator).await?;
    let _operator = operator.start()?;
    let bundle = rights::add_bundle(cluster, &[], "with-plugin")?;
    let plugin = json!({
        "apiVersion": "console.openshift.io/v1alpha1", "kind": "ConsolePlugin", "metadata": {"name": "plugin"},
        "spec": {"displayName": "a plugin"},
    });
    fs::write(bundle.join("manifests/plugin.json"), plugin.to_string())?;
    succeed(
        &cluster.client,
        "POST",
        BUNDLE_DEPLOYMENTS,
        Some(&rights::bundle_deployment("with-plugin")),
    )
    .await?;
    ready(&cluster.client, "own", PATIENCE).await?;
    tokio::time::sleep(QUIET).await;
    let path = "/apis/console.openshift.io/v1alpha1/consoleplugins/plugin";
    let writes = || -> Vec<_> {
        let log = proxy.log();
        log.into_iter()
            .filter(|line| line.contains("/consoleplugins"))
            .collect()
    };
    anyhow::ensure!(writes() == [format!("PATCH {path}")], "{:?}", writes());
    // The next bundle lacks the object.
    rights::add_bundle(cluster, &[], "without-plugin")?;
    steps::set_source(&cluster.client, "own", "without-plugin").await?;
    ready(&cluster.client, "own", PATIENCE).await?;
    gone(&cluster.client, path).await?;
    delete(
        &cluster.client,
        &format!("{CRDS}/consoleplugins.console.openshift.io"),
    )
    .await
}

/// How long another client undoes each repair.
const FIGHT: Duration = Duration::from_secs(15);

pub(super) async fn a_client_that_undoes_every_repair_is_named_and_slowed_down(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let (operator, proxy) = cluster.proxied(&cluster.operator).await?;
    let _operator = operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    let theirs = json!({"data": {"color": "red"}});
    let path = format!("{CONFIG_MAP}?fieldManager=fighter");
    let started = tokio::time::Instant::now();
    while started.elapsed() < FIGHT {
        let live = get(&cluster.client, CONFIG_MAP).await?.context("gone")?;
        if live["data"]["color"] == "red" {
            tokio::time::sleep(Duration::from_millis(5)).await;
        } else {
            request::send(&cluster.client, "PATCH", &path, Some(&theirs)).await?;
        }
    }
    let write = format!("PATCH {CONFIG_MAP}");
    let repairs = proxy.log().iter().filter(|line| **line == write).count();
    anyhow::ensure!((20..=27).contains(&repairs), "{repairs} writes within {FIGHT:?}");
    let events = list(
        &cluster.client,
        "/apis/events.k8s.io/v1/namespaces/default/events",
    )
    .await?;
    let notes: Vec<_> = events
        .iter()
        .filter(|event| event["reason"] == "ObjectContested")
        .map(|event| text(event, "/note"))
        .collect();
    anyhow::ensure!(
        notes
            .iter()
            .any(|note| note.contains("fighter") && note.contains("sample-operator-config")),
        "{notes:?}"
    );
    // It is repaired once the other client stops.
    until("the ConfigMap is repaired", PATIENCE, async || {
        let live = get(&cluster.client, CONFIG_MAP).await?.context("gone")?;
        Ok(check(live["data"]["color"] == "blue", || {
            live["data"].to_string()
        }))
    })
    .await
}
