//! Converts objects of samples to and from those of API servers.

use std::collections::BTreeMap;

use anyhow::anyhow;
use policy::cases::merged;
use serde_json::{Value, json};
use windlass_object::object;

use crate::request::text;

/// Fields of the metadata that API servers set.
const SERVER_FIELDS: [&str; 5] = [
    "creationTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "uid",
];

/// Returns the collection of policies of a kind.
pub(super) fn policy_collection(policy: &Value) -> String {
    let plural = match text(policy, "/kind") {
        "ClusterOverridePolicy" => "clusteroverridepolicies",
        "OverridePolicy" => "overridepolicies",
        _ => "clustervalidatepolicies",
    };
    match object::text(policy, "/metadata/namespace") {
        Some(namespace) => format!("namespaces/{namespace}/{plural}"),
        None => plural.to_owned(),
    }
}

/// Returns the collection of an object of a sample.
pub(super) fn collection(object: &Value) -> anyhow::Result<String> {
    let (api_version, kind) = (text(object, "/apiVersion"), text(object, "/kind"));
    let plural = match kind {
        "Namespace" | "PriorityClass" => {
            let plural = kind.to_lowercase() + if kind == "Namespace" { "s" } else { "es" };
            return Ok(format!("{}/{plural}", api_root(api_version)));
        }
        "Pod" | "ConfigMap" | "Secret" | "Service" | "Deployment" | "ReplicaSet" | "StatefulSet" => {
            kind.to_lowercase() + "s"
        }
        kind => return Err(anyhow!("add the plural of kind {kind} here")),
    };
    let namespace = text(object, "/metadata/namespace");
    Ok(format!(
        "{}/namespaces/{namespace}/{plural}",
        api_root(api_version)
    ))
}

fn api_root(api_version: &str) -> String {
    match api_version {
        "v1" => "/api/v1".to_owned(),
        api_version => format!("/apis/{api_version}"),
    }
}

/// Adds the fields that API servers require, and policies do not.
pub(super) fn with_required_fields(object: &Value) -> Value {
    let container = json!([{"name": "c", "image": "a"}]);
    let needed = match text(object, "/kind") {
        // Without a token, whose volume would have a random name. The account has both its names, since the
        // sandbox sets one from the other only if a webhook was called.
        "Pod" => json!({"spec": {
            "automountServiceAccountToken": false, "serviceAccountName": "default", "serviceAccount": "default",
            "containers": container,
        }}),
        "Deployment" | "ReplicaSet" | "StatefulSet" => json!({"spec": {
            "selector": {"matchLabels": {"app": "a"}},
            "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": container}},
        }}),
        "PriorityClass" => json!({"value": 1}),
        _ => json!({}),
    };
    merged(&needed, object)
}

/// Removes the fields that differ between writes.
pub(super) fn comparable(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in SERVER_FIELDS {
            metadata.remove(field);
        }
    }
    for path in ["/spec/tolerations", "/spec/template/spec/tolerations"] {
        // API servers add tolerations of nodes that are not ready before they call policies.
        if let Some(tolerations) = object.pointer_mut(path).and_then(Value::as_array_mut) {
            tolerations.sort_by_key(Value::to_string);
        }
    }
    object
}

/// Merges an object into the live one, with exactly the labels and annotations of the object.
pub(super) fn with_updates(current: &Value, object: &Value) -> Value {
    let mut changed = merged(current, object);
    for field in ["labels", "annotations"] {
        changed["metadata"][field] = object["metadata"][field].clone();
    }
    // Controllers may write its status at the same time.
    changed["metadata"]["resourceVersion"] = Value::Null;
    changed
}

/// Replaces the uids of owners with those of the API server; unknown owners are kept.
pub(super) fn with_live_owners(object: &Value, uids: &BTreeMap<String, String>) -> Value {
    let mut object = object.clone();
    let owners = object.pointer_mut("/metadata/ownerReferences");
    for owner in owners.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(uid) = uids.get(text(owner, "/uid")) {
            owner["uid"] = uid.clone().into();
        }
    }
    object
}
