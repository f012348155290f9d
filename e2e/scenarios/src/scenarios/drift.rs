//! Changes by other clients to fields that Windlass manages are reverted.

use anyhow::Context;
use serde_json::{Value, json};
use windlass_trust::injection::{KINDS, TargetKind};

use super::{
    foreign,
    target::{ForeignTarget, define},
};
use crate::{
    request::text,
    sample::{self, CERTIFICATE},
    steps::{MUTATING, PATIENCE, VALIDATING, get, list, succeed, until},
    test_cluster::TestCluster,
};

/// The collection of Cluster API's ExtensionConfigs.
pub(super) const EXTENSION_CONFIGS: &str = "/apis/runtime.cluster.x-k8s.io/v1beta2/extensionconfigs";

/// A target with the sample's trust bundle that receives no traffic.
fn target(kind: &'static TargetKind) -> ForeignTarget {
    let annotations = json!({"windlass.dev/inject-ca-from": format!("{}/{CERTIFICATE}", sample::NAMESPACE)});
    ForeignTarget::new(
        kind,
        &annotations,
        (sample::NAMESPACE, CERTIFICATE),
        &["one.example.com"],
    )
}

/// Returns the path of another field of the client configuration, and a valid value for it.
fn other_field(target: &ForeignTarget) -> (String, Value) {
    if target.kind.kind == "APIService" {
        return ("/spec/versionPriority".to_owned(), json!(200));
    }
    (
        target.bundle_pointer(0).replace("caBundle", "service/path"),
        json!("/elsewhere"),
    )
}

/// The kinds whose objects are always targets.
fn kinds() -> impl Iterator<Item = &'static TargetKind> {
    KINDS.iter().filter(|kind| !kind.is_common())
}

/// A webhook configuration `platform` with the sample's trust bundle, which receives no traffic.
pub(super) fn configuration(kind: &str) -> anyhow::Result<Value> {
    let kind = kinds().find(|known| known.kind == kind);
    Ok(target(kind.context("no such kind of target")?).object)
}

/// Installs the sample and creates a target of each kind that bundles do not contain. The CRDs of Cluster
/// API, Karmada and others are created after the operator has started.
async fn install_with_targets(cluster: &TestCluster) -> anyhow::Result<Vec<ForeignTarget>> {
    sample::install(cluster, "sample.v1").await?;
    for kind in kinds() {
        define(&cluster.client, kind).await?;
    }
    let targets: Vec<_> = kinds().map(target).collect();
    for target in &targets {
        succeed(
            &cluster.client,
            "POST",
            &target.collection(),
            Some(&target.object),
        )
        .await?;
    }
    Ok(targets)
}

/// A minimal CRD of Cluster API's ExtensionConfig.
pub(super) fn extension_config_crd() -> Value {
    foreign::crd(
        "runtime.cluster.x-k8s.io/v1beta2",
        "ExtensionConfig",
        "extensionconfigs",
        false,
    )
}

/// An ExtensionConfig with the sample's trust bundle.
pub(super) fn extension_config() -> Value {
    json!({
        "apiVersion": "runtime.cluster.x-k8s.io/v1beta2", "kind": "ExtensionConfig",
        "metadata": {"name": "hooks", "annotations": {
            "windlass.dev/inject-ca-from": format!("{}/{CERTIFICATE}", sample::NAMESPACE),
        }},
        "spec": {"clientConfig": {"service": {
            "namespace": sample::NAMESPACE, "name": CERTIFICATE, "path": "/hooks", "port": 443,
        }}},
    })
}

pub(super) async fn every_kind_of_target_is_repaired(cluster: &TestCluster) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    let created = install_with_targets(cluster).await?;
    let mut targets = vec![(
        sample::DEFINITION.to_owned(),
        "/spec/conversion/webhook/clientConfig/caBundle".to_owned(),
    )];
    targets.extend(
        created
            .iter()
            .map(|target| (target.path(), target.bundle_pointer(0))),
    );
    for collection in [VALIDATING, MUTATING] {
        for object in list(&cluster.client, collection).await? {
            let path = format!("{collection}/{}", text(&object, "/metadata/name"));
            if targets.iter().all(|(known, _)| *known != path) {
                targets.push((path, "/webhooks/0/clientConfig/caBundle".to_owned()));
            }
        }
    }
    let trust = sample::trust_bundle(cluster).await?;
    for (path, pointer) in &targets {
        wait_for_bundle(cluster, path, pointer, &trust).await?;
    }
    let stranger = foreign::trust_bundle()?;
    for (path, pointer) in &targets {
        let patch = json!([{"op": "replace", "path": pointer, "value": stranger}]);
        succeed(&cluster.client, "PATCH", path, Some(&patch)).await?;
        wait_for_bundle(cluster, path, pointer, &trust).await?;
    }
    Ok(())
}

pub(super) async fn concurrent_writes_of_other_clients_are_kept(cluster: &TestCluster) -> anyhow::Result<()> {
    let (operator, gate) = cluster.proxied(&cluster.operator).await?;
    let _operator = operator.start()?;
    let targets = install_with_targets(cluster).await?;
    let trust = sample::trust_bundle(cluster).await?;
    let stranger = foreign::trust_bundle()?;
    for target in &targets {
        let path = target.path();
        wait_for_bundle(cluster, &path, &target.bundle_pointer(0), &trust).await?;
        let (field, value) = &other_field(target);
        let replaced =
            |pointer: &str, value: &Value| json!([{"op": "replace", "path": pointer, "value": value}]);
        gate.overtake(&cluster.client, &path, replaced(field, value));
        let patch = replaced(&target.bundle_pointer(0), &json!(stranger));
        succeed(&cluster.client, "PATCH", &path, Some(&patch)).await?;
        wait_for_bundle(cluster, &path, &target.bundle_pointer(0), &trust).await?;
        let object = get(&cluster.client, &path)
            .await?
            .context("the target was deleted")?;
        anyhow::ensure!(
            object.pointer(field) == Some(value),
            "the value of {field} at {path}, which another client wrote, is lost: {object}"
        );
    }
    anyhow::ensure!(gate.has_overtaken(), "no write of the operator met a conflict");
    Ok(())
}

pub(super) async fn a_deleted_webhook_configuration_is_created_again(
    cluster: &TestCluster,
) -> anyhow::Result<()> {
    let _operator = cluster.operator.start()?;
    sample::install(cluster, "sample.v1").await?;
    let trust = sample::trust_bundle(cluster).await?;
    for collection in [VALIDATING, MUTATING] {
        let object = list(&cluster.client, collection)
            .await?
            .pop()
            .context("no configuration")?;
        let path = format!("{collection}/{}", text(&object, "/metadata/name"));
        succeed(&cluster.client, "DELETE", &path, None).await?;
        wait_for_bundle(cluster, &path, "/webhooks/0/clientConfig/caBundle", &trust).await?;
    }
    let patch = json!({"spec": {"selector": {"app": "another-app"}}});
    let before = get(&cluster.client, sample::SERVICE)
        .await?
        .context("no Service")?["spec"]["selector"]
        .clone();
    succeed(&cluster.client, "PATCH", sample::SERVICE, Some(&patch)).await?;
    until("the Service selects the operator again", PATIENCE, async || {
        let service = get(&cluster.client, sample::SERVICE)
            .await?
            .context("no Service")?;
        let selector = &service["spec"]["selector"];
        let repaired = before
            .as_object()
            .is_some_and(|labels| labels.iter().all(|(name, value)| selector[name] == *value));
        Ok(if repaired {
            Ok(())
        } else {
            Err(selector.to_string())
        })
    })
    .await
}

/// Waits until the caBundle at `pointer` equals `expected`.
pub(super) async fn wait_for_bundle(
    cluster: &TestCluster,
    path: &str,
    pointer: &str,
    trust: &str,
) -> anyhow::Result<()> {
    until(&format!("{path} has the trust bundle"), PATIENCE, async || {
        let object = get(&cluster.client, path).await?;
        let found = object.as_ref().map(|object| text(object, pointer));
        Ok(if found == Some(trust) {
            Ok(())
        } else {
            Err(format!("{pointer} is {found:?}"))
        })
    })
    .await
}
