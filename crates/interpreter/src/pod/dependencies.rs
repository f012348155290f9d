//! Dependencies of the pods of a template.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_object::object::{items, text};

use crate::answer::DependentObjectReference;

/// Fields with containers.
const CONTAINERS: [&str; 3] = ["/initContainers", "/containers", "/ephemeralContainers"];

/// Volume fields that name a Secret.
const SECRETS_OF_VOLUMES: [&str; 10] = [
    "/azureFile/secretName",
    "/cephfs/secretRef/name",
    "/cinder/secretRef/name",
    "/flexVolume/secretRef/name",
    "/rbd/secretRef/name",
    "/secret/secretName",
    "/scaleIO/secretRef/name",
    "/iscsi/secretRef/name",
    "/storageos/secretRef/name",
    "/csi/nodePublishSecretRef/name",
];

/// Returns the dependencies of a template's pods: ConfigMaps, Secrets, the ServiceAccount unless it is
/// `default`, and PersistentVolumeClaims, each once, in this order and sorted by name. `getPodDependencies`
/// of Karmada's library for scripts.
///
/// The dependencies are in `namespace`, which defaults to `default`. Optional references are included. Fields
/// of the wrong type are ignored.
pub fn dependencies(template: &Value, namespace: Option<&str>) -> Vec<DependentObjectReference> {
    references(template, Some(namespace.unwrap_or("default")))
}

/// Like [`dependencies`], but without a default namespace.
pub(crate) fn references(template: &Value, namespace: Option<&str>) -> Vec<DependentObjectReference> {
    let spec = template.get("spec").unwrap_or(&Value::Null);
    let kinds = [
        ("ConfigMap", config_maps(spec)),
        ("Secret", secrets(spec)),
        ("ServiceAccount", service_account(spec).into_iter().collect()),
        ("PersistentVolumeClaim", claims(spec)),
    ];
    let mut references = Vec::new();
    for (kind, names) in kinds {
        let names = names.into_iter().filter(|name| !name.is_empty());
        references.extend(names.map(|name| DependentObjectReference {
            api_version: "v1".to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.map(str::to_owned),
            name: Some(name.to_owned()),
            label_selector: None,
        }));
    }
    references
}

fn config_maps(spec: &Value) -> BTreeSet<&str> {
    let mut names = named_by_containers(spec, "/configMapRef/name", "/valueFrom/configMapKeyRef/name");
    for volume in items(spec, "/volumes") {
        names.extend(text(volume, "/configMap/name"));
        let sources = items(volume, "/projected/sources");
        names.extend(
            sources
                .iter()
                .filter_map(|source| text(source, "/configMap/name")),
        );
    }
    names
}

fn secrets(spec: &Value) -> BTreeSet<&str> {
    let mut names = named_by_containers(spec, "/secretRef/name", "/valueFrom/secretKeyRef/name");
    let to_pull = items(spec, "/imagePullSecrets");
    names.extend(to_pull.iter().filter_map(|reference| text(reference, "/name")));
    for volume in items(spec, "/volumes") {
        names.extend(
            SECRETS_OF_VOLUMES
                .into_iter()
                .filter_map(|pointer| text(volume, pointer)),
        );
        let sources = items(volume, "/projected/sources");
        names.extend(sources.iter().filter_map(|source| text(source, "/secret/name")));
    }
    names
}

/// Each namespace has its own ServiceAccount `default`.
fn service_account(spec: &Value) -> Option<&str> {
    text(spec, "/serviceAccountName").filter(|name| *name != "default")
}

fn claims(spec: &Value) -> BTreeSet<&str> {
    let volumes = items(spec, "/volumes").iter();
    volumes
        .filter_map(|volume| text(volume, "/persistentVolumeClaim/claimName"))
        .collect()
}

/// Returns the names in `envFrom` and `env` of containers.
fn named_by_containers<'a>(spec: &'a Value, all: &str, one: &str) -> BTreeSet<&'a str> {
    let containers = CONTAINERS.into_iter().flat_map(|pointer| items(spec, pointer));
    let named = containers.flat_map(|container| {
        let all = items(container, "/envFrom")
            .iter()
            .filter_map(move |source| text(source, all));
        let one = items(container, "/env")
            .iter()
            .filter_map(move |variable| text(variable, one));
        all.chain(one)
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The kinds and names of dependencies of a pod spec.
    fn dependency_names(spec: &Value) -> Vec<String> {
        let references = dependencies(&json!({"spec": spec}), Some("n"));
        references
            .into_iter()
            .map(|reference| format!("{} {}", reference.kind, reference.name.unwrap()))
            .collect()
    }

    #[test]
    fn every_reference_of_a_pod_is_found() {
        let volume = |source: Value| json!({"volumes": [source]});
        for (spec, expected) in [
            (json!({"imagePullSecrets": [{"name": "a"}]}), "Secret a"),
            (json!({"serviceAccountName": "a"}), "ServiceAccount a"),
            (
                volume(json!({"persistentVolumeClaim": {"claimName": "a"}})),
                "PersistentVolumeClaim a",
            ),
            (
                volume(json!({"configMap": {"name": "a", "optional": true}})),
                "ConfigMap a",
            ),
            (
                volume(json!({"projected": {"sources": [{"configMap": {"name": "a"}}]}})),
                "ConfigMap a",
            ),
            (
                volume(json!({"projected": {"sources": [{"secret": {"name": "a"}}]}})),
                "Secret a",
            ),
            (volume(json!({"azureFile": {"secretName": "a"}})), "Secret a"),
            (
                volume(json!({"cephfs": {"secretRef": {"name": "a"}}})),
                "Secret a",
            ),
            (
                volume(json!({"cinder": {"secretRef": {"name": "a"}}})),
                "Secret a",
            ),
            (
                volume(json!({"flexVolume": {"secretRef": {"name": "a"}}})),
                "Secret a",
            ),
            (volume(json!({"rbd": {"secretRef": {"name": "a"}}})), "Secret a"),
            (volume(json!({"secret": {"secretName": "a"}})), "Secret a"),
            (
                volume(json!({"scaleIO": {"secretRef": {"name": "a"}}})),
                "Secret a",
            ),
            (volume(json!({"iscsi": {"secretRef": {"name": "a"}}})), "Secret a"),
            (
                volume(json!({"storageos": {"secretRef": {"name": "a"}}})),
                "Secret a",
            ),
            (
                volume(json!({"csi": {"nodePublishSecretRef": {"name": "a"}}})),
                "Secret a",
            ),
        ] {
            assert_eq!(dependency_names(&spec), [expected], "{spec}");
        }
    }

    #[test]
    fn every_type_of_container_is_searched() {
        for containers in ["containers", "initContainers", "ephemeralContainers"] {
            let spec = json!({containers: [{
                "envFrom": [{"configMapRef": {"name": "a"}}, {"secretRef": {"name": "b"}}],
                "env": [
                    {"name": "PLAIN", "value": "x"},
                    {"name": "C", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
                    {"name": "D", "valueFrom": {"secretKeyRef": {"name": "d", "key": "k"}}},
                ],
            }]});
            assert_eq!(
                dependency_names(&spec),
                ["ConfigMap a", "ConfigMap c", "Secret b", "Secret d"],
                "{containers}"
            );
        }
    }

    #[test]
    fn references_are_unique_and_have_names() {
        let spec = json!({
            "serviceAccountName": "default",
            "imagePullSecrets": [{"name": "b"}, {"name": "a"}, {"name": "b"}, {"name": ""}, {}, 3],
            "volumes": [{"secret": {"secretName": "a"}}, {"configMap": {"name": ""}}, {"emptyDir": {}}],
        });
        assert_eq!(dependency_names(&spec), ["Secret a", "Secret b"]);
        assert!(dependency_names(&json!({"serviceAccountName": ""})).is_empty());
        assert!(dependencies(&json!(null), None).is_empty());
    }

    #[test]
    fn references_are_in_the_namespace_of_the_pod() {
        let template = json!({"spec": {"serviceAccountName": "a"}});
        for (namespace, expected) in [(Some("n"), "n"), (None, "default")] {
            assert_eq!(
                json!(dependencies(&template, namespace)),
                json!([{"apiVersion": "v1", "kind": "ServiceAccount", "namespace": expected, "name": "a"}])
            );
        }
        assert_eq!(references(&template, None)[0].namespace, None);
    }
}
