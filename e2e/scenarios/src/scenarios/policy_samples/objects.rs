//! Objects of samples as API servers take and give them.

use std::collections::BTreeMap;

use anyhow::anyhow;
use policy::cases::merged;
use serde_json::{Value, json};
use windlass_object::object;

use crate::request::text;

/// What metadata has of an API server, whatever is written.
const OF_THE_SERVER: [&str; 5] = [
    "creationTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "uid",
];

/// Where policies of a kind are.
pub(super) fn folder(policy: &Value) -> String {
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

/// Where objects of the kinds of the samples are.
pub(super) fn collection(object: &Value) -> anyhow::Result<String> {
    let (api_version, kind) = (text(object, "/apiVersion"), text(object, "/kind"));
    let plural = match kind {
        "Namespace" | "PriorityClass" => {
            let plural = kind.to_lowercase() + if kind == "Namespace" { "s" } else { "es" };
            return Ok(format!("{}/{plural}", api(api_version)));
        }
        "Pod" | "ConfigMap" | "Secret" | "Service" | "Deployment" | "ReplicaSet" | "StatefulSet" => {
            kind.to_lowercase() + "s"
        }
        kind => return Err(anyhow!("say where objects of kind {kind} are")),
    };
    let namespace = text(object, "/metadata/namespace");
    Ok(format!("{}/namespaces/{namespace}/{plural}", api(api_version)))
}

fn api(api_version: &str) -> String {
    match api_version {
        "v1" => "/api/v1".to_owned(),
        api_version => format!("/apis/{api_version}"),
    }
}

/// An object with what API servers ask for, and policies do not.
pub(super) fn complete(object: &Value) -> Value {
    let container = json!([{"name": "c", "image": "a"}]);
    let needed = match text(object, "/kind") {
        // The name of a volume with a token would be another each time. The account by both its names: the sandbox gives one from the
        // other only where somebody was asked.
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

/// An object without what is different each time it is written.
pub(super) fn comparable(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in OF_THE_SERVER {
            metadata.remove(field);
        }
    }
    for path in ["/spec/tolerations", "/spec/template/spec/tolerations"] {
        // API servers tolerate nodes that are not ready, before policies are asked.
        if let Some(tolerations) = object.pointer_mut(path).and_then(Value::as_array_mut) {
            tolerations.sort_by_key(Value::to_string);
        }
    }
    object
}

/// What is there with an object put over it, and exactly its labels and annotations.
pub(super) fn over(current: &Value, object: &Value) -> Value {
    let mut changed = merged(current, object);
    for field in ["labels", "annotations"] {
        changed["metadata"][field] = object["metadata"][field].clone();
    }
    // Controllers write its status meanwhile.
    changed["metadata"]["resourceVersion"] = Value::Null;
    changed
}

/// An object whose owners have the uids that an API server gave them, by what the sample calls them. Others are nobody's.
pub(super) fn owned(object: &Value, uids: &BTreeMap<String, String>) -> Value {
    let mut object = object.clone();
    let owners = object.pointer_mut("/metadata/ownerReferences");
    for owner in owners.and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(uid) = uids.get(text(owner, "/uid")) {
            owner["uid"] = uid.clone().into();
        }
    }
    object
}
