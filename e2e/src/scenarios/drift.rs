//! Somebody else changes what Windlass keeps: it comes back.

use anyhow::Context;
use serde_json::{Value, json};

use super::rotation::CERTIFICATE;
use crate::{
    bed::Bed,
    request::text,
    steps::{CRDS, MUTATING, PATIENCE, VALIDATING, get, install, list, succeed, until},
};

/// The collection of Cluster API's ExtensionConfigs.
pub(super) const EXTENSION_CONFIGS: &str = "/apis/runtime.cluster.x-k8s.io/v1beta2/extensionconfigs";

/// The annotation by which a target asks for the sample's trust bundle.
fn annotation() -> Value {
    json!({"windlass.dev/inject-ca-from": format!("sample-system/{CERTIFICATE}")})
}

/// A target of each kind that others create: where it goes, the object, and where its caBundle is.
fn annotated_targets() -> Vec<(&'static str, Value, &'static str)> {
    let service =
        |path: &str| json!({"namespace": "sample-system", "name": CERTIFICATE, "path": path, "port": 443});
    let rule = json!({"apiGroups": ["nothing.example.com"], "apiVersions": ["v1"], "resources": ["nothings"], "operations": ["CREATE"]});
    let webhooks = json!([{
        "name": "one.example.com", "clientConfig": {"service": service("/validate")}, "rules": [rule],
        "sideEffects": "None", "admissionReviewVersions": ["v1"],
    }]);
    let metadata = |name: &str| json!({"name": name, "annotations": annotation()});
    vec![
        (
            VALIDATING,
            json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
                   "metadata": metadata("platform"), "webhooks": webhooks}),
            "/webhooks/0/clientConfig/caBundle",
        ),
        (
            MUTATING,
            json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
                   "metadata": metadata("platform"), "webhooks": webhooks}),
            "/webhooks/0/clientConfig/caBundle",
        ),
        (
            CRDS,
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": metadata("gears.platform.example.com"),
                "spec": {"group": "platform.example.com", "scope": "Cluster", "names": {"plural": "gears", "singular": "gear", "kind": "Gear", "listKind": "GearList"},
                    "versions": [version("v1", true), version("v1beta1", false)],
                    "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"service": service("/convert")}}}}}),
            "/spec/conversion/webhook/clientConfig/caBundle",
        ),
        (
            "/apis/apiregistration.k8s.io/v1/apiservices",
            json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": metadata("v1.aggregated.example.com"),
                   "spec": {"group": "aggregated.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100,
                            "service": {"namespace": "sample-system", "name": CERTIFICATE, "port": 443}}}),
            "/spec/caBundle",
        ),
        (
            EXTENSION_CONFIGS,
            extension_config(),
            "/spec/clientConfig/caBundle",
        ),
    ]
}

fn version(name: &str, storage: bool) -> Value {
    json!({"name": name, "served": true, "storage": storage,
           "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
}

/// An ExtensionConfig that asks for the sample's trust bundle.
pub(super) fn extension_config() -> Value {
    json!({
        "apiVersion": "runtime.cluster.x-k8s.io/v1beta2", "kind": "ExtensionConfig",
        "metadata": {"name": "hooks", "annotations": annotation()},
        "spec": {"clientConfig": {"service": {"namespace": "sample-system", "name": CERTIFICATE, "path": "/hooks", "port": 443}}},
    })
}

/// Cluster API's CRD, as far as an ExtensionConfig needs it here.
pub(super) fn extension_config_crd() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "extensionconfigs.runtime.cluster.x-k8s.io"},
        "spec": {"group": "runtime.cluster.x-k8s.io", "scope": "Cluster",
                 "names": {"plural": "extensionconfigs", "singular": "extensionconfig", "kind": "ExtensionConfig", "listKind": "ExtensionConfigList"},
                 "versions": [version("v1beta2", true)]}})
}

pub(super) async fn every_kind_of_target_is_repaired(bed: &Bed) -> anyhow::Result<()> {
    let _operator = bed.operator.start()?;
    install(&bed.client, "sample", "sample-system", &bed.bundle("sample.v1")?).await?;
    // Cluster API comes after the operator has started: its CRD may come and go.
    succeed(&bed.client, "POST", CRDS, Some(&extension_config_crd())).await?;
    let mut targets = vec![(
        format!("{CRDS}/widgets.sample.windlass.dev"),
        "/spec/conversion/webhook/clientConfig/caBundle",
    )];
    for (collection, object, pointer) in annotated_targets() {
        until(&format!("{collection} is served"), PATIENCE, async || {
            Ok(get(&bed.client, collection)
                .await?
                .map(drop)
                .ok_or_else(|| "404".to_owned()))
        })
        .await?;
        succeed(&bed.client, "POST", collection, Some(&object)).await?;
        targets.push((
            format!("{collection}/{}", text(&object, "/metadata/name")),
            pointer,
        ));
    }
    for collection in [VALIDATING, MUTATING] {
        for object in list(&bed.client, collection).await? {
            let path = format!("{collection}/{}", text(&object, "/metadata/name"));
            if targets.iter().all(|(known, _)| *known != path) {
                targets.push((path, "/webhooks/0/clientConfig/caBundle"));
            }
        }
    }
    let trust = bed.trust_bundle("sample-system", CERTIFICATE).await?;
    for (path, pointer) in &targets {
        carries(bed, path, pointer, &trust).await?;
    }
    let stranger = bed.foreign_trust_bundle()?;
    for (path, pointer) in &targets {
        let patch = json!([{"op": "replace", "path": pointer, "value": stranger}]);
        succeed(&bed.client, "PATCH", path, Some(&patch)).await?;
        carries(bed, path, pointer, &trust).await?;
    }
    Ok(())
}

pub(super) async fn a_removed_configuration_comes_back(bed: &Bed) -> anyhow::Result<()> {
    let _operator = bed.operator.start()?;
    install(&bed.client, "sample", "sample-system", &bed.bundle("sample.v1")?).await?;
    let trust = bed.trust_bundle("sample-system", CERTIFICATE).await?;
    for collection in [VALIDATING, MUTATING] {
        let object = list(&bed.client, collection)
            .await?
            .pop()
            .context("no configuration")?;
        let path = format!("{collection}/{}", text(&object, "/metadata/name"));
        succeed(&bed.client, "DELETE", &path, None).await?;
        carries(bed, &path, "/webhooks/0/clientConfig/caBundle", &trust).await?;
    }
    let path = format!("/api/v1/namespaces/sample-system/services/{CERTIFICATE}");
    let patch = json!({"spec": {"selector": {"app": "somebody-else"}}});
    let before = get(&bed.client, &path).await?.context("no Service")?["spec"]["selector"].clone();
    succeed(&bed.client, "PATCH", &path, Some(&patch)).await?;
    until("the Service selects the operator again", PATIENCE, async || {
        let service = get(&bed.client, &path).await?.context("no Service")?;
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
async fn carries(bed: &Bed, path: &str, pointer: &str, trust: &str) -> anyhow::Result<()> {
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
