//! Servers of the previous callers: copies of Deployments, and the endpoints of the previous Services.

use std::time::Duration;

use anyhow::bail;
use serde_json::Value;
use windlass_adoption::{AdoptionRecord, RecordedObject, kept_copy, narrowed_selector, selects_pods_of};
use windlass_cluster::{Cluster, kinds};
use windlass_object::{ObjectKey, label_selector, names, object};
use windlass_operator::bundle_deployment::RolloutStatus;

use super::super::object_changes::{change, create, delete, wait_until, with_key};
use crate::{commands::cluster::explain_error, terminal::Progress};

/// The label that distinguishes the pods of a ReplicaSet.
const POD_TEMPLATE_HASH: &str = "pod-template-hash";

/// The annotation with the revision of a ReplicaSet and its Deployment.
const REVISION: &str = "deployment.kubernetes.io/revision";

/// Creates the copies and waits until they serve.
///
/// # Errors
///
/// When they are not available in time.
pub(super) async fn ensure_copies(
    cluster: &Cluster,
    record: &AdoptionRecord,
    progress: &mut Progress,
    patience: Duration,
) -> anyhow::Result<()> {
    for kept in record.kept_deployments() {
        let copy = kept_copy(&kept.object, &record.bundle_deployment);
        let Some(key) = ObjectKey::from_object(&copy) else {
            continue;
        };
        let live = cluster.read(&key).await.map_err(explain_error)?;
        if live.as_ref().is_some_and(|live| !is_copy(live, record)) {
            bail!("{key} exists: rename it, its name is needed for a copy that keeps serving");
        }
        if live.is_none() {
            let created = cluster.apply(&copy, names::COMMAND, true).await;
            created.map_err(|error| with_key(&key, error))?;
            progress.done(&format!(
                "Created {key}, which keeps serving the existing callers"
            ));
        }
        wait_for_available(cluster, &key, progress, patience).await?;
    }
    Ok(())
}

/// Deletes the copies, and waits until their pods have terminated.
///
/// # Errors
///
/// When they are not deleted in time.
pub(super) async fn remove_copies(
    cluster: &Cluster,
    record: &AdoptionRecord,
    progress: &mut Progress,
    patience: Duration,
) -> anyhow::Result<()> {
    let copies = record
        .kept_deployments()
        .map(|kept| kept_copy(&kept.object, &record.bundle_deployment));
    let keys: Vec<_> = copies.filter_map(|copy| ObjectKey::from_object(&copy)).collect();
    for key in &keys {
        let live = cluster.read(key).await.map_err(explain_error)?;
        if let Some(live) = live.filter(|live| is_copy(live, record)) {
            delete(cluster, key, object::text(&live, "/metadata/uid")).await?;
        }
    }
    for key in &keys {
        wait_until(progress, patience, async || {
            let live = cluster.read(key).await.map_err(explain_error)?;
            let left = live.filter(|live| is_copy(live, record));
            Ok(left.map(|_| format!("{key} to be deleted")))
        })
        .await?;
    }
    Ok(())
}

/// Waits until no pod of an adopted Deployment is terminating.
///
/// # Errors
///
/// When that takes too long.
pub(super) async fn wait_for_ended_pods(
    cluster: &Cluster,
    record: &AdoptionRecord,
    progress: &mut Progress,
    patience: Duration,
) -> anyhow::Result<()> {
    for kept in record.kept_deployments() {
        let namespace = object::text(&kept.object, "/metadata/namespace");
        let selector = &kept.object["spec"]["selector"];
        wait_until(progress, patience, async || {
            let pods = cluster
                .list(&kinds::POD, namespace, None)
                .await
                .map_err(explain_error)?;
            let ending = pods.iter().find(|pod| {
                !pod["metadata"]["deletionTimestamp"].is_null()
                    && label_selector::matches(selector, &pod["metadata"]["labels"])
            });
            let name = ending.and_then(|pod| object::text(pod, "/metadata/name"));
            Ok(name.map(|name| format!("pod {name} to terminate")))
        })
        .await?;
    }
    Ok(())
}

fn is_copy(live: &Value, record: &AdoptionRecord) -> bool {
    object::label(live, names::KEPT_FOR) == Some(&record.bundle_deployment)
}

/// Waits until a Deployment has all its pods, and no pods of an older revision.
///
/// # Errors
///
/// When that takes too long.
pub(super) async fn wait_for_available(
    cluster: &Cluster,
    key: &ObjectKey,
    progress: &mut Progress,
    patience: Duration,
) -> anyhow::Result<()> {
    wait_until(progress, patience, async || {
        let Some(live) = cluster.read(key).await.map_err(explain_error)? else {
            return Ok(Some(format!("{key} to be created")));
        };
        Ok(match RolloutStatus::of(&live) {
            RolloutStatus::Complete => None,
            RolloutStatus::Running(state) | RolloutStatus::Stuck(state) => Some(state),
        })
    })
    .await
}

/// Restricts a Service to those of its recorded pods that have a label. Its other fields become the recorded
/// ones.
///
/// # Errors
///
/// When the cluster rejects the write, or no such pod is ready in time.
pub(super) async fn restrict_service(
    cluster: &Cluster,
    service: &RecordedObject,
    label: (&str, &str),
    change_object: impl Fn(&Value) -> Value,
    progress: &mut Progress,
    patience: Duration,
) -> anyhow::Result<()> {
    let Some(key) = service.key() else { return Ok(()) };
    let selector = narrowed_selector(&service.object, label.0, label.1);
    let narrowed = |live: &Value| {
        let mut narrowed = change_object(live);
        narrowed["spec"]["selector"] = selector.clone();
        narrowed
    };
    let written = change(cluster, &key, &narrowed)
        .await
        .map_err(|error| with_key(&key, error))?;
    if written.is_none() {
        create(cluster, &narrowed(&service.object)).await?;
    }
    wait_for_endpoints(cluster, &key, label, progress, patience).await
}

/// Waits until a Service has ready endpoints, all of them pods with a label.
async fn wait_for_endpoints(
    cluster: &Cluster,
    service: &ObjectKey,
    (label, value): (&str, &str),
    progress: &mut Progress,
    patience: Duration,
) -> anyhow::Result<()> {
    let namespace = service.namespace.as_deref();
    let objects_of_service = format!("kubernetes.io/service-name={}", service.name);
    wait_until(progress, patience, async || {
        let slices = cluster
            .list(&kinds::ENDPOINT_SLICE, namespace, Some(&objects_of_service))
            .await;
        let slices = slices.map_err(explain_error)?;
        let pods = cluster
            .list(&kinds::POD, namespace, Some(&format!("{label}={value}")))
            .await;
        let pods = pods.map_err(explain_error)?;
        let is_pod = |name: &str| {
            pods.iter()
                .any(|pod| object::text(pod, "/metadata/name") == Some(name))
        };
        let ready: Vec<_> = slices
            .iter()
            .flat_map(|slice| object::items(slice, "/endpoints"))
            .filter(|endpoint| endpoint.pointer("/conditions/ready") != Some(&Value::Bool(false)))
            .filter_map(|endpoint| object::text(endpoint, "/targetRef/name"))
            .collect();
        let is_there = !ready.is_empty() && ready.into_iter().all(is_pod);
        Ok((!is_there).then(|| format!("{service} to have only endpoints with {label}={value}")))
    })
    .await
}

/// Returns the label that only the newest pods of the Deployment behind a Service have.
///
/// # Errors
///
/// When the cluster cannot be read.
pub(super) async fn newest_pods_label(
    cluster: &Cluster,
    record: &AdoptionRecord,
    service: &RecordedObject,
) -> anyhow::Result<Option<(&'static str, String)>> {
    let Some(kept) = record
        .kept_deployments()
        .find(|kept| selects_pods_of(&service.object, &kept.object))
    else {
        return Ok(None);
    };
    let Some(key) = kept.key() else { return Ok(None) };
    let Some(deployment) = cluster.read(&key).await.map_err(explain_error)? else {
        return Ok(None);
    };
    let sets = cluster
        .list(&kinds::REPLICA_SET, key.namespace.as_deref(), None)
        .await;
    let uid = object::text(&deployment, "/metadata/uid");
    let revision = object::annotation(&deployment, REVISION);
    let sets = sets.map_err(explain_error)?;
    let newest = sets.iter().find(|set| {
        let owners = object::items(set, "/metadata/ownerReferences");
        object::annotation(set, REVISION) == revision
            && owners.iter().any(|owner| object::text(owner, "/uid") == uid)
    });
    let hash = newest.and_then(|set| object::label(set, POD_TEMPLATE_HASH));
    Ok(hash.map(|hash| (POD_TEMPLATE_HASH, hash.to_owned())))
}
