//! The Deployments that a ClusterServiceVersion describes.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Map, Value, json};

use super::objects::{owner_labels, owner_reference};
use crate::request::text;

/// The label with the hash of the Deployment that OLM wrote.
pub(super) const SPEC_HASH: &str = "olm.deployment-spec-hash";

/// The mount paths of the serving certificate.
const VOLUMES: [(&str, &str, &str, &str); 2] = [
    (
        "apiservice-cert",
        "/apiserver.local.config/certificates",
        "apiserver.crt",
        "apiserver.key",
    ),
    (
        "webhook-cert",
        "/tmp/k8s-webhook-server/serving-certs",
        "tls.crt",
        "tls.key",
    ),
];

/// A substitute for OLM's hashes, which only OLM reads.
pub(super) fn hash(value: &Value) -> String {
    let mut hasher = DefaultHasher::new();
    value.to_string().hash(&mut hasher);
    format!("{:x}", hasher.finish())
}

/// The Service of a Deployment.
pub(super) fn service_name(deployment: &str) -> String {
    format!("{}-service", deployment.replace('.', "-"))
}

/// The descriptions of Deployments in a ClusterServiceVersion.
pub(super) fn descriptions(csv: &Value) -> &[Value] {
    let descriptions = csv.pointer("/spec/install/spec/deployments");
    descriptions.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The definitions of webhooks in a ClusterServiceVersion.
pub(super) fn webhooks(csv: &Value) -> &[Value] {
    let definitions = csv.pointer("/spec/webhookdefinitions");
    definitions.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Whether a webhook is served by the Deployment of that name.
pub(super) fn serves(csv: &Value, name: &str) -> bool {
    webhooks(csv)
        .iter()
        .any(|webhook| text(webhook, "/deploymentName") == name)
}

/// The Deployment of a description. `ca_hash` is the hash of the CA if the Deployment serves webhooks.
pub(super) fn expected(csv: &Value, description: &Value, ca_hash: Option<&str>) -> Value {
    let name = text(description, "/name");
    let mut spec = description["spec"].clone();
    spec["revisionHistoryLimit"] = 1.into();
    let template = &mut spec["template"];
    let annotations = fields(template, &["metadata", "annotations"]);
    for (name, value) in csv["metadata"]["annotations"].as_object().into_iter().flatten() {
        annotations.insert(name.clone(), value.clone());
    }
    if let Some(ca_hash) = ca_hash {
        annotations.insert("olmcahash".to_owned(), ca_hash.into());
        mount(&mut template["spec"], &format!("{}-cert", service_name(name)));
    }
    let variable = json!({"name": "OPERATOR_CONDITION_NAME", "value": csv["metadata"]["name"]});
    for container in template["spec"]["containers"]
        .as_array_mut()
        .into_iter()
        .flatten()
    {
        push(container, "env", variable.clone());
    }
    let mut labels = description["label"].as_object().cloned().unwrap_or_default();
    labels.extend(owner_labels(csv).as_object().cloned().unwrap_or_default());
    labels.insert(SPEC_HASH.to_owned(), hash(&spec).into());
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": csv["metadata"]["namespace"], "labels": labels,
            "ownerReferences": [owner_reference(csv)]},
        "spec": spec,
    })
}

fn mount(pod: &mut Value, secret: &str) {
    for (volume, folder, certificate, key) in VOLUMES {
        let items = json!([{"key": "tls.crt", "path": certificate}, {"key": "tls.key", "path": key}]);
        push(
            pod,
            "volumes",
            json!({"name": volume, "secret": {"secretName": secret, "items": items}}),
        );
        for container in pod["containers"].as_array_mut().into_iter().flatten() {
            push(
                container,
                "volumeMounts",
                json!({"name": volume, "mountPath": folder}),
            );
        }
    }
}

fn push(object: &mut Value, list: &str, item: Value) {
    match object[list].as_array_mut() {
        Some(items) => items.push(item),
        None => object[list] = json!([item]),
    }
}

fn fields<'a>(value: &'a mut Value, path: &[&str]) -> &'a mut Map<String, Value> {
    windlass_object::json::fields(value, path)
}
