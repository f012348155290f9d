//! Somebody else changes what Windlass keeps: it comes back.

use anyhow::Context;
use serde_json::{Value, json};

use super::foreign::{self, version};
use crate::{
    request::text,
    sample::{self, CERTIFICATE},
    steps::{CRDS, MUTATING, PATIENCE, VALIDATING, get, list, succeed, until},
    test_cluster::TestCluster,
};

/// The collection of Cluster API's ExtensionConfigs.
pub(super) const EXTENSION_CONFIGS: &str = "/apis/runtime.cluster.x-k8s.io/v1beta2/extensionconfigs";

/// A target that others create.
struct Target {
    /// Where it goes.
    collection: &'static str,
    object: Value,
    /// Where its caBundle is.
    bundle: &'static str,
    /// Another field of what its caBundle is for, and a value that it may get.
    other: (&'static str, Value),
}

impl Target {
    fn path(&self) -> String {
        format!("{}/{}", self.collection, text(&self.object, "/metadata/name"))
    }
}

/// Metadata of a target that asks for the sample's trust bundle.
fn metadata(name: &str) -> Value {
    json!({"name": name, "annotations": {"windlass.dev/inject-ca-from": format!("sample-system/{CERTIFICATE}")}})
}

/// The sample's Service, as one that is called at `path`.
fn service(path: &str) -> Value {
    json!({"namespace": "sample-system", "name": CERTIFICATE, "path": path, "port": 443})
}

/// A webhook configuration, `platform`, that asks for the sample's trust bundle and that nothing is sent through.
pub(super) fn configuration(kind: &str) -> Value {
    let rule = json!({"apiGroups": ["nothing.example.com"], "apiVersions": ["v1"], "resources": ["nothings"], "operations": ["CREATE"]});
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": metadata("platform"),
        "webhooks": [{
            "name": "one.example.com", "clientConfig": {"service": service("/validate")}, "rules": [rule],
            "sideEffects": "None", "admissionReviewVersions": ["v1"],
        }],
    })
}

/// A target of each kind that others create.
fn annotated_targets() -> Vec<Target> {
    let target = |collection, object, bundle, other| Target {
        collection,
        object,
        bundle,
        other,
    };
    let path = |pointer| (pointer, json!("/elsewhere"));
    let webhook = "/webhooks/0/clientConfig/caBundle";
    let webhook_path = "/webhooks/0/clientConfig/service/path";
    vec![
        target(
            VALIDATING,
            configuration("ValidatingWebhookConfiguration"),
            webhook,
            path(webhook_path),
        ),
        target(
            MUTATING,
            configuration("MutatingWebhookConfiguration"),
            webhook,
            path(webhook_path),
        ),
        target(
            CRDS,
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": metadata("gears.platform.example.com"),
                "spec": {"group": "platform.example.com", "scope": "Cluster", "names": {"plural": "gears", "singular": "gear", "kind": "Gear", "listKind": "GearList"},
                    "versions": [version("v1", true), version("v1beta1", false)],
                    "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"service": service("/convert")}}}}}),
            "/spec/conversion/webhook/clientConfig/caBundle",
            path("/spec/conversion/webhook/clientConfig/service/path"),
        ),
        target(
            "/apis/apiregistration.k8s.io/v1/apiservices",
            json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": metadata("v1.aggregated.example.com"),
                   "spec": {"group": "aggregated.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100,
                            "service": {"namespace": "sample-system", "name": CERTIFICATE, "port": 443}}}),
            "/spec/caBundle",
            ("/spec/versionPriority", json!(200)),
        ),
        target(
            EXTENSION_CONFIGS,
            extension_config(),
            "/spec/clientConfig/caBundle",
            path("/spec/clientConfig/service/path"),
        ),
        target(
            "/apis/config.karmada.io/v1alpha1/resourceinterpreterwebhookconfigurations",
            json!({"apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterWebhookConfiguration",
                   "metadata": metadata("interpreters"), "webhooks": [{
                       "name": "one.example.com", "clientConfig": {"service": service("/interpret")},
                       "rules": [{"apiGroups": ["nothing.example.com"], "apiVersions": ["v1"], "kinds": ["Nothing"], "operations": ["InterpretReplica"]}],
                       "interpreterContextVersions": ["v1alpha1"]}]}),
            webhook,
            path(webhook_path),
        ),
    ]
}

/// Cluster API's CRD, as far as an ExtensionConfig needs it here.
pub(super) fn extension_config_crd() -> Value {
    foreign::crd(
        "runtime.cluster.x-k8s.io/v1beta2",
        "ExtensionConfig",
        "extensionconfigs",
        false,
    )
}

/// Creates the sample's install and the targets. The CRDs of Cluster API and Karmada come after the operator has started:
/// they may come and go.
async fn install_beside_targets(bed: &TestCluster) -> anyhow::Result<Vec<Target>> {
    sample::install(bed, "sample.v1").await?;
    foreign::define(bed, &extension_config_crd()).await?;
    let karmada = (
        "config.karmada.io/v1alpha1",
        "ResourceInterpreterWebhookConfiguration",
    );
    let plural = "resourceinterpreterwebhookconfigurations";
    foreign::define(bed, &foreign::crd(karmada.0, karmada.1, plural, false)).await?;
    let targets = annotated_targets();
    for target in &targets {
        succeed(&bed.client, "POST", target.collection, Some(&target.object)).await?;
    }
    Ok(targets)
}

/// An ExtensionConfig that asks for the sample's trust bundle.
pub(super) fn extension_config() -> Value {
    json!({
        "apiVersion": "runtime.cluster.x-k8s.io/v1beta2", "kind": "ExtensionConfig",
        "metadata": metadata("hooks"), "spec": {"clientConfig": {"service": service("/hooks")}},
    })
}

pub(super) async fn every_kind_of_target_is_repaired(bed: &TestCluster) -> anyhow::Result<()> {
    let _operator = bed.operator.start()?;
    let created = install_beside_targets(bed).await?;
    let mut targets = vec![(
        sample::DEFINITION.to_owned(),
        "/spec/conversion/webhook/clientConfig/caBundle",
    )];
    targets.extend(created.iter().map(|target| (target.path(), target.bundle)));
    for collection in [VALIDATING, MUTATING] {
        for object in list(&bed.client, collection).await? {
            let path = format!("{collection}/{}", text(&object, "/metadata/name"));
            if targets.iter().all(|(known, _)| *known != path) {
                targets.push((path, "/webhooks/0/clientConfig/caBundle"));
            }
        }
    }
    let trust = sample::trust_bundle(bed).await?;
    for (path, pointer) in &targets {
        carries(bed, path, pointer, &trust).await?;
    }
    let stranger = foreign::trust_bundle()?;
    for (path, pointer) in &targets {
        let patch = json!([{"op": "replace", "path": pointer, "value": stranger}]);
        succeed(&bed.client, "PATCH", path, Some(&patch)).await?;
        carries(bed, path, pointer, &trust).await?;
    }
    Ok(())
}

pub(super) async fn what_others_write_at_the_same_moment_is_kept(bed: &TestCluster) -> anyhow::Result<()> {
    let (operator, gate) = bed.gated(&bed.operator).await?;
    let _operator = operator.start()?;
    let targets = install_beside_targets(bed).await?;
    let trust = sample::trust_bundle(bed).await?;
    let stranger = foreign::trust_bundle()?;
    for target in &targets {
        let path = target.path();
        carries(bed, &path, target.bundle, &trust).await?;
        let (field, value) = &target.other;
        let replaced =
            |pointer: &str, value: &Value| json!([{"op": "replace", "path": pointer, "value": value}]);
        gate.overtake(&bed.client, &path, replaced(field, value));
        let patch = replaced(target.bundle, &json!(stranger));
        succeed(&bed.client, "PATCH", &path, Some(&patch)).await?;
        carries(bed, &path, target.bundle, &trust).await?;
        let object = get(&bed.client, &path).await?.context("the target is gone")?;
        anyhow::ensure!(
            object.pointer(field) == Some(value),
            "{path} lost what somebody else wrote to {field}: {object}"
        );
    }
    anyhow::ensure!(gate.has_overtaken(), "no write of the operator was overtaken");
    Ok(())
}

pub(super) async fn a_removed_configuration_comes_back(bed: &TestCluster) -> anyhow::Result<()> {
    let _operator = bed.operator.start()?;
    sample::install(bed, "sample.v1").await?;
    let trust = sample::trust_bundle(bed).await?;
    for collection in [VALIDATING, MUTATING] {
        let object = list(&bed.client, collection)
            .await?
            .pop()
            .context("no configuration")?;
        let path = format!("{collection}/{}", text(&object, "/metadata/name"));
        succeed(&bed.client, "DELETE", &path, None).await?;
        carries(bed, &path, "/webhooks/0/clientConfig/caBundle", &trust).await?;
    }
    let patch = json!({"spec": {"selector": {"app": "somebody-else"}}});
    let before = get(&bed.client, sample::SERVICE).await?.context("no Service")?["spec"]["selector"].clone();
    succeed(&bed.client, "PATCH", sample::SERVICE, Some(&patch)).await?;
    until("the Service selects the operator again", PATIENCE, async || {
        let service = get(&bed.client, sample::SERVICE).await?.context("no Service")?;
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

/// Waits until the caBundle at `pointer` is the given one.
async fn carries(bed: &TestCluster, path: &str, pointer: &str, trust: &str) -> anyhow::Result<()> {
    until(
        &format!("{path} carries the trust bundle"),
        PATIENCE,
        async || {
            let object = get(&bed.client, path).await?;
            let found = object.as_ref().map(|object| text(object, pointer));
            Ok(if found == Some(trust) {
                Ok(())
            } else {
                Err(format!("{pointer} is {found:?}"))
            })
        },
    )
    .await
}
