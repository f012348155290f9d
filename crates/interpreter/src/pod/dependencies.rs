//! What a pod mounts, reads and runs as: Karmada's `getPodDependencies` (`GetDependenciesFromPodTemplate` of
//! `pkg/util/helper/pod.go`), whose order is that of ConfigMaps, Secrets, the ServiceAccount and PersistentVolumeClaims, each by name.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_object::object::{items, text};

use crate::answer::DependentObjectReference;

/// Where containers are in a pod.
const CONTAINERS: [&str; 3] = ["/containers", "/initContainers", "/ephemeralContainers"];

/// Where a volume names a Secret.
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

/// Names of objects, by kind.
#[derive(Debug, Default)]
struct Names<'a> {
    config_maps: BTreeSet<&'a str>,
    secrets: BTreeSet<&'a str>,
    claims: BTreeSet<&'a str>,
}

/// The objects that pods of a template need, in `namespace`. Those that are optional are among them.
pub fn dependencies(template: &Value, namespace: Option<&str>) -> Vec<DependentObjectReference> {
    let spec = template.get("spec").unwrap_or(&Value::Null);
    let mut names = Names::default();
    names
        .secrets
        .extend(named(items(spec, "/imagePullSecrets"), "/name"));
    for container in CONTAINERS.iter().flat_map(|pointer| items(spec, pointer)) {
        names.note_container(container);
    }
    for volume in items(spec, "/volumes") {
        names.note_volume(volume);
    }
    let account = text(spec, "/serviceAccountName").filter(|name| *name != "default");
    let of_kind = |kind: &'static str| {
        move |name: &str| DependentObjectReference {
            api_version: "v1".to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.map(str::to_owned),
            name: Some(name.to_owned()),
            label_selector: None,
        }
    };
    let is_named = |name: &&str| !name.is_empty();
    let config_maps = names
        .config_maps
        .into_iter()
        .filter(is_named)
        .map(of_kind("ConfigMap"));
    let secrets = names.secrets.into_iter().filter(is_named).map(of_kind("Secret"));
    let accounts = account
        .into_iter()
        .filter(is_named)
        .map(of_kind("ServiceAccount"));
    let claims = names
        .claims
        .into_iter()
        .filter(is_named)
        .map(of_kind("PersistentVolumeClaim"));
    config_maps.chain(secrets).chain(accounts).chain(claims).collect()
}

fn named<'a>(list: &'a [Value], pointer: &'a str) -> impl Iterator<Item = &'a str> {
    list.iter().filter_map(move |item| text(item, pointer))
}

// === impl Names ===

impl<'a> Names<'a> {
    fn note_container(&mut self, container: &'a Value) {
        for (list, map, secret) in [
            (
                "/env",
                "/valueFrom/configMapKeyRef/name",
                "/valueFrom/secretKeyRef/name",
            ),
            ("/envFrom", "/configMapRef/name", "/secretRef/name"),
        ] {
            self.config_maps.extend(named(items(container, list), map));
            self.secrets.extend(named(items(container, list), secret));
        }
    }

    fn note_volume(&mut self, volume: &'a Value) {
        self.config_maps.extend(text(volume, "/configMap/name"));
        self.secrets.extend(
            SECRETS_OF_VOLUMES
                .iter()
                .filter_map(|pointer| text(volume, pointer)),
        );
        self.claims
            .extend(text(volume, "/persistentVolumeClaim/claimName"));
        let projected = items(volume, "/projected/sources");
        self.config_maps.extend(named(projected, "/configMap/name"));
        self.secrets.extend(named(projected, "/secret/name"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names(spec: Value) -> Vec<String> {
        let found = dependencies(&json!({"spec": spec}), Some("n"));
        let shown = found.into_iter().map(|reference| {
            assert_eq!(
                (&*reference.api_version, reference.namespace.as_deref()),
                ("v1", Some("n"))
            );
            format!("{} {}", reference.kind, reference.name.unwrap_or_default())
        });
        shown.collect()
    }

    #[test]
    fn each_place_of_a_reference_is_found() {
        let from = |kind: &str| json!([{"valueFrom": {kind: {"name": "a", "key": "k"}}}]);
        let by_reference = [
            "cephfs",
            "cinder",
            "flexVolume",
            "rbd",
            "scaleIO",
            "iscsi",
            "storageos",
        ]
        .map(|kind| json!({kind: {"secretRef": {"name": kind}}}));
        for (spec, expected) in [
            (json!({}), &[][..]),
            (
                json!({"containers": [{"env": from("configMapKeyRef")}]}),
                &["ConfigMap a"],
            ),
            (
                json!({"initContainers": [{"env": from("secretKeyRef")}]}),
                &["Secret a"],
            ),
            (
                json!({"ephemeralContainers": [{"envFrom": [{"configMapRef": {"name": "a"}}, {"secretRef": {"name": "a"}}]}]}),
                &["ConfigMap a", "Secret a"],
            ),
            (
                json!({"imagePullSecrets": [{"name": "b"}, {"name": "a"}, {"name": "b"}, {"name": ""}]}),
                &["Secret a", "Secret b"],
            ),
            (json!({"serviceAccountName": "a"}), &["ServiceAccount a"]),
            (json!({"serviceAccountName": "default"}), &[]),
            (json!({"serviceAccountName": ""}), &[]),
            (
                json!({"volumes": [{"configMap": {"name": "a", "optional": true}}]}),
                &["ConfigMap a"],
            ),
            (
                json!({"volumes": [{"persistentVolumeClaim": {"claimName": "a"}}]}),
                &["PersistentVolumeClaim a"],
            ),
            (
                json!({"volumes": [{"projected": {"sources": [{"configMap": {"name": "a"}}, {"secret": {"name": "a"}}]}}]}),
                &["ConfigMap a", "Secret a"],
            ),
            (
                json!({"volumes": [{"azureFile": {"secretName": "a"}}, {"secret": {"secretName": "b"}}]}),
                &["Secret a", "Secret b"],
            ),
            (
                json!({"volumes": by_reference}),
                &[
                    "Secret cephfs",
                    "Secret cinder",
                    "Secret flexVolume",
                    "Secret iscsi",
                    "Secret rbd",
                    "Secret scaleIO",
                    "Secret storageos",
                ],
            ),
            (
                json!({"volumes": [{"csi": {"nodePublishSecretRef": {"name": "a"}}}]}),
                &["Secret a"],
            ),
            (json!({"containers": "x", "volumes": [1, null]}), &[]),
        ] {
            assert_eq!(names(spec.clone()), expected, "{spec}");
        }
    }
}
