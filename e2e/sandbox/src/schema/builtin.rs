//! How the lists and maps of built-in kinds merge.
//!
//! The values of `x-kubernetes-list-type` and `x-kubernetes-map-type` in Kubernetes's OpenAPI (1.36), for the
//! fields that users of the sandbox write. Lists that are missing here are atomic, as in Kubernetes.

use super::{ListType, Path};

/// Lists by parent field (`` for any), field and keys.
const MAPS: &[(&str, &str, &[&str])] = &[
    ("", "containers", &["name"]),
    ("", "initContainers", &["name"]),
    ("", "ephemeralContainers", &["name"]),
    ("", "env", &["name"]),
    ("", "volumes", &["name"]),
    ("", "volumeMounts", &["mountPath"]),
    ("", "volumeDevices", &["devicePath"]),
    ("containers", "ports", &["containerPort", "protocol"]),
    ("initContainers", "ports", &["containerPort", "protocol"]),
    ("spec", "ports", &["port", "protocol"]),
    ("", "imagePullSecrets", &["name"]),
    ("", "hostAliases", &["ip"]),
    (
        "",
        "topologySpreadConstraints",
        &["topologyKey", "whenUnsatisfiable"],
    ),
    ("", "claims", &["name"]),
    ("", "webhooks", &["name"]),
    ("", "matchConditions", &["name"]),
    ("", "conditions", &["type"]),
    ("", "secrets", &["name"]),
    ("", "podIPs", &["ip"]),
    ("", "hostIPs", &["ip"]),
    ("status", "addresses", &["type"]),
];

/// Atomic objects, by field name.
const ATOMIC_OBJECTS: &[&str] = &[
    "nodeSelector",
    "configMapKeyRef",
    "secretKeyRef",
    "fieldRef",
    "resourceFieldRef",
    "labelSelector",
    "namespaceSelector",
    "objectSelector",
    "roleRef",
    "claimRef",
    "involvedObject",
    "regarding",
    "related",
    "targetRef",
    "loadBalancer",
];

/// Kinds whose `spec.selector` is atomic: a label selector, or a map that is declared atomic.
const ATOMIC_SELECTORS: &[&str] = &[
    "Deployment",
    "ReplicaSet",
    "StatefulSet",
    "DaemonSet",
    "Job",
    "Service",
];

/// How a list in `metadata` merges.
pub(super) fn metadata_list(path: &Path<'_>) -> ListType {
    match path {
        [.., "ownerReferences"] => ListType::Map(vec!["uid".to_owned()]),
        [.., "finalizers"] => ListType::Set,
        _ => ListType::Atomic,
    }
}

/// How the list at `path` merges.
pub(super) fn list(kind: &str, path: &Path<'_>) -> ListType {
    let Some((field, before)) = path.split_last() else {
        return ListType::Atomic;
    };
    if *field == "finalizers" && path.contains(&"metadata") {
        return ListType::Set;
    }
    // A CRD's own lists and schemas are atomic, and so are endpoints, except for their conditions.
    let is_atomic_kind = matches!(kind, "CustomResourceDefinition" | "EndpointSlice" | "Endpoints");
    if is_atomic_kind && *field != "conditions" {
        return ListType::Atomic;
    }
    let parent = before
        .iter()
        .rev()
        .find(|name| **name != "*")
        .copied()
        .unwrap_or_default();
    MAPS.iter()
        .find(|(wanted, name, _)| name == field && (wanted.is_empty() || *wanted == parent))
        .map_or(ListType::Atomic, |(_, _, keys)| {
            ListType::Map(keys.iter().map(|key| (*key).to_owned()).collect())
        })
}

/// Reports whether the object at `path` is atomic.
pub(super) fn is_atomic_object(kind: &str, path: &Path<'_>) -> bool {
    match path {
        ["spec", "selector"] => ATOMIC_SELECTORS.contains(&kind),
        [.., field] => ATOMIC_OBJECTS.contains(field),
        [] => false,
    }
}
