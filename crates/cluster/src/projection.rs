//! The fields that the index keeps of incompletely stored objects, by kind.

use serde_json::{Map, Value, json};
use windlass_object::{
    ObjectKey, names,
    secret_keys::{CA_CERTIFICATES, PREVIOUS_CAS, TLS_CERTIFICATE, TLS_PRIVATE_KEY},
};
use windlass_trust::{
    injection::{CONFIG_MAP_KEY, KINDS, TargetKind, TargetKinds},
    trust_bundle::MAX_ENCODED_LENGTH,
};

use crate::{
    kind::{Kind, kinds},
    relation::SERVICE_NAME,
};

/// Fields of an EndpointSlice, besides its endpoints.
const SLICE: [&str; 6] = [
    "apiVersion",
    "kind",
    "metadata",
    "addressType",
    "ports",
    "endpoints",
];

/// Fields of an endpoint.
const ENDPOINT: [&str; 3] = ["addresses", "conditions", "targetRef"];

/// Fields of the spec of a Service that no install applied.
const SERVICE: [&str; 5] = ["ports", "selector", "clusterIP", "clusterIPs", "type"];

/// Metadata for the identity and deletion of an object.
const IDENTITY: [&str; 9] = [
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "labels",
    "annotations",
];

/// In a path: each item of a list.
const ITEMS: &str = "*";

/// The maximum length, in bytes, of labels and annotations of an object that is reduced to its name.
const LONGEST_MARK: usize = 1 << 10;

/// The maximum number of labels, and of annotations, of an object that is reduced to its name. Windlass sets
/// fewer.
const MARKS: usize = 32;

/// Reports whether objects of a kind are stored completely: kinds whose objects may have CA bundles anywhere,
/// and Windlass's own kinds.
pub(crate) fn is_indivisible(kind: &Kind) -> bool {
    let (group, _) = kind.group_version();
    let target = KINDS.iter().find(|target| target.is(group, &kind.kind));
    let ours = [
        kinds::CLUSTER_OVERRIDE_POLICY,
        kinds::CLUSTER_POLICY_REPORT,
        kinds::CLUSTER_VALIDATE_POLICY,
        kinds::NAMESPACE,
        kinds::OVERRIDE_POLICY,
        kinds::POLICY_REPORT,
        kinds::RESOURCE_INTERPRETATION,
        kinds::RESOURCE_INTERPRETER_CUSTOMIZATION,
    ];
    target.is_some_and(|target| !target.is_common()) || group == names::GROUP || ours.contains(kind)
}

/// Reduces an object to the fields that are read. `served` is the Secret whose private key is kept; of
/// `targets`, only added kinds matter.
pub(crate) fn project(object: &mut Value, kind: &Kind, served: &ObjectKey, targets: &TargetKinds) {
    let (group, _) = kind.group_version();
    if let Some(target) = targets.added().iter().find(|target| target.is(group, &kind.kind)) {
        keep_ca_bundles(object, target);
        return;
    }
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    if *kind == kinds::ENDPOINT_SLICE {
        reduce_slice(fields);
    } else if *kind == kinds::SERVICE {
        fields.retain(|name, _| ["apiVersion", "kind", "metadata", "spec"].contains(&name.as_str()));
        keep_fields(fields.get_mut("spec"), &SERVICE);
    } else if *kind == kinds::SECRET {
        let is_served =
            ObjectKey::from_object(&Value::Object(fields.clone())).is_some_and(|key| key == *served);
        let keys: &[&str] = if is_served {
            &[CA_CERTIFICATES, TLS_CERTIFICATE, TLS_PRIVATE_KEY]
        } else {
            &[CA_CERTIFICATES, PREVIOUS_CAS]
        };
        fields.retain(|name, _| ["apiVersion", "kind", "metadata", "type", "data"].contains(&name.as_str()));
        keep_fields(fields.get_mut("data"), keys);
    } else if *kind == kinds::LEASE {
        fields.retain(|name, _| ["apiVersion", "kind", "metadata", "spec"].contains(&name.as_str()));
    } else if *kind == kinds::CONFIG_MAP {
        fields.remove("binaryData");
        keep_fields(fields.get_mut("data"), &[CA_CERTIFICATES, CONFIG_MAP_KEY]);
        // A value too long for a trust bundle is treated as empty.
        for value in fields
            .get_mut("data")
            .and_then(Value::as_object_mut)
            .into_iter()
            .flatten()
        {
            if value
                .1
                .as_str()
                .is_some_and(|text| text.len() > MAX_ENCODED_LENGTH)
            {
                *value.1 = Value::from("");
            }
        }
    } else if *kind == kinds::CUSTOM_RESOURCE_DEFINITION
        && let Some(Value::Array(versions)) = object.pointer_mut("/spec/versions")
    {
        for version in versions.iter_mut().filter_map(Value::as_object_mut) {
            version.remove("schema");
        }
    }
}

/// Reduces a target to its CA bundle fields, and the fields that identify their servers.
fn keep_ca_bundles(object: &mut Value, target: &TargetKind) {
    let mut paths: Vec<Vec<&str>> = ["apiVersion", "kind", "metadata"].map(|field| vec![field]).into();
    for place in &target.places {
        let mut item = Vec::new();
        if let Some(list) = &place.list {
            item.extend(list.split('/').skip(1).chain([ITEMS]));
            paths.push([&*item, &["name"]].concat());
        }
        let holder: Vec<_> = item.into_iter().chain(place.holder.split('/').skip(1)).collect();
        let fields = [&*place.field, "service", "url", "insecureSkipTLSVerify"];
        paths.extend(fields.map(|field| [&*holder, &[field]].concat()));
    }
    *object = fields_at(
        object.take(),
        &paths.iter().map(Vec::as_slice).collect::<Vec<_>>(),
    );
}

/// Returns the values at these paths with their parents. [`ITEMS`] is each item of a list.
fn fields_at(value: Value, paths: &[&[&str]]) -> Value {
    let behind = |name: &str| -> Vec<&[&str]> {
        let paths = paths.iter().filter_map(|path| path.split_first());
        paths
            .filter_map(|(first, rest)| (*first == name).then_some(rest))
            .collect()
    };
    match value {
        value if paths.iter().any(|path| path.is_empty()) => value,
        Value::Object(fields) => {
            let fields = fields.into_iter().filter_map(|(name, value)| {
                let behind = behind(&name);
                (!behind.is_empty()).then(|| (name, fields_at(value, &behind)))
            });
            fields.collect()
        }
        Value::Array(items) => {
            let behind = behind(ITEMS);
            items.into_iter().map(|item| fields_at(item, &behind)).collect()
        }
        value => value,
    }
}

fn reduce_slice(fields: &mut Map<String, Value>) {
    fields.retain(|name, _| SLICE.contains(&name.as_str()));
    if let Some(metadata) = fields.get_mut("metadata") {
        keep_fields(
            Some(&mut *metadata),
            &["name", "namespace", "uid", "resourceVersion", "labels"],
        );
        if let Some(Value::Object(labels)) = metadata.get_mut("labels") {
            labels.retain(|name, _| name == SERVICE_NAME || is_windlass_name(name));
        }
    }
    if let Some(Value::Array(endpoints)) = fields.get_mut("endpoints") {
        for endpoint in endpoints {
            keep_fields(Some(&mut *endpoint), &ENDPOINT);
            keep_fields(endpoint.get_mut("targetRef"), &["kind", "name", "uid"]);
        }
    }
}

/// Reduces an object to its name and Windlass's marks.
pub(crate) fn name_and_marks(mut object: Value) -> Value {
    let mut metadata = object["metadata"].take();
    keep_fields(Some(&mut metadata), &IDENTITY);
    for marks in ["labels", "annotations"] {
        if let Some(Value::Object(marks)) = metadata.get_mut(marks) {
            let mut left = MARKS;
            marks.retain(|name, value| {
                let is_short = value.as_str().is_none_or(|text| text.len() <= LONGEST_MARK);
                let is_kept = is_windlass_name(name) && is_short && left > 0;
                left -= usize::from(is_kept);
                is_kept
            });
        }
    }
    let mut bare = json!({"apiVersion": object["apiVersion"].take(), "kind": object["kind"].take(), "metadata": metadata});
    if object.get("data").is_some() {
        // cert-manager and the like would add a missing field.
        bare["data"] = json!({});
    }
    bare
}

/// Keeps only the fields `names` of an object.
fn keep_fields(object: Option<&mut Value>, names: &[&str]) {
    if let Some(Value::Object(fields)) = object {
        fields.retain(|name, _| names.contains(&name.as_str()));
    }
}

/// Reports whether a label or an annotation is Windlass's.
pub(crate) fn is_windlass_name(name: &str) -> bool {
    name.split_once('/')
        .is_some_and(|(prefix, _)| prefix == names::GROUP)
}

#[cfg(test)]
mod tests {
    use windlass_trust::injection::{CaBundlePlace, Encoding};

    use super::*;

    fn projected(mut object: Value, kind: &Kind) -> Value {
        object["apiVersion"] = kind.api_version.as_ref().into();
        object["kind"] = kind.kind.as_ref().into();
        let served = kinds::SECRET.object(Some("windlass-system"), "windlass-cert");
        project(&mut object, kind, &served, &TargetKinds::default());
        object
    }

    #[test]
    fn endpoint_slices_keep_addresses_and_readiness() {
        let slice = projected(
            json!({
                "metadata": {
                    "namespace": "n", "name": "s-1", "generateName": "s-", "annotations": {"a": "b"},
                    "labels": {SERVICE_NAME: "s", names::BUNDLE_DEPLOYMENT: "a", "app": "a"},
                },
                "addressType": "IPv4", "ports": [{"name": "443", "port": 9443}],
                "endpoints": [{
                    "addresses": ["10.0.0.1"], "conditions": {"ready": true}, "nodeName": "node", "zone": "z",
                    "targetRef": {"kind": "Pod", "namespace": "n", "name": "a", "uid": "1", "fieldPath": "x"},
                }],
            }),
            &kinds::ENDPOINT_SLICE,
        );
        let expected = json!({
            "metadata": {
                "namespace": "n", "name": "s-1", "labels": {SERVICE_NAME: "s", names::BUNDLE_DEPLOYMENT: "a"},
            },
            "addressType": "IPv4", "ports": [{"name": "443", "port": 9443}],
            "endpoints": [{
                "addresses": ["10.0.0.1"], "conditions": {"ready": true},
                "targetRef": {"kind": "Pod", "name": "a", "uid": "1"},
            }],
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        });
        assert_eq!(slice, expected);
    }

    #[test]
    fn services_keep_their_selector_and_ports() {
        let service = projected(
            json!({
                "metadata": {"namespace": "n", "name": "s"}, "status": {"loadBalancer": {}},
                "spec": {"ports": [{"port": 443}], "selector": {"a": "b"}, "clusterIP": "10.0.0.1",
                    "externalIPs": ["1.2.3.4"], "type": "ClusterIP"},
            }),
            &kinds::SERVICE,
        );
        let spec = json!({
            "ports": [{"port": 443}], "selector": {"a": "b"}, "clusterIP": "10.0.0.1", "type": "ClusterIP",
        });
        assert_eq!((&service["spec"], service.get("status")), (&spec, None));
    }

    #[test]
    fn only_the_served_secret_keeps_its_private_key() {
        let secret = |namespace: &str, name: &str| {
            let secret = projected(
                json!({
                    "metadata": {"namespace": namespace, "name": name},
                    "data": {"ca.crt": "1", "tls.crt": "2", "tls.key": "3", "current.key": "4", "other": "5"},
                    "stringData": {"a": "b"}, "type": "kubernetes.io/tls",
                }),
                &kinds::SECRET,
            );
            assert_eq!(secret.get("stringData"), None);
            secret["data"].clone()
        };
        for (namespace, name) in [("n", "s"), ("n", "windlass-cert"), ("windlass-system", "n.s")] {
            assert_eq!(secret(namespace, name), json!({"ca.crt": "1"}));
        }
        let served = json!({"ca.crt": "1", "tls.crt": "2", "tls.key": "3"});
        assert_eq!(secret("windlass-system", "windlass-cert"), served);
    }

    #[test]
    fn config_maps_keep_only_ca_certificates() {
        let config_map = projected(
            json!({
                "immutable": true, "binaryData": {"part": "H4sI"},
                "data": {"a": "b", "ca.crt": "c", "ca-bundle.crt": "x".repeat(MAX_ENCODED_LENGTH + 1)},
            }),
            &kinds::CONFIG_MAP,
        );
        assert_eq!(config_map["data"], json!({"ca.crt": "c", "ca-bundle.crt": ""}));
        assert_eq!(config_map.get("binaryData"), None);
        assert_eq!(config_map["immutable"], true);
    }

    #[test]
    fn kinds_with_ca_bundles_are_indivisible() {
        let hooks = kinds::MUTATING_WEBHOOK_CONFIGURATION;
        for kind in [hooks, kinds::BUNDLE_DEPLOYMENT, kinds::API_SERVICE] {
            assert!(is_indivisible(&kind), "{kind}");
        }
        for kind in [kinds::SECRET, kinds::SERVICE, kinds::DEPLOYMENT] {
            assert!(!is_indivisible(&kind), "{kind}");
        }
    }

    #[test]
    fn added_kinds_keep_their_ca_bundle_fields() {
        let place = |path| CaBundlePlace::at(path, Encoding::Base64).unwrap();
        let gateways = TargetKind {
            group: "example.com".into(),
            kind: "Gateway".into(),
            places: vec![place("/spec/tls/ca"), place("/spec/backends/*/client/caBundle")],
            ..KINDS[0].clone()
        };
        let mut object = json!({
            "apiVersion": "example.com/v1", "kind": "Gateway", "metadata": {"name": "g", "labels": {"a": "b"}},
            "spec": {
                "tls": {"ca": "a", "key": "secret"}, "routes": [1, 2],
                "backends": [{"weight": 1}, {"name": "b", "client": {"url": "https://b", "caBundle": "c", "retries": 3}}],
            },
            "status": {"conditions": []},
        });
        let served = kinds::SECRET.object(Some("windlass-system"), "windlass-cert");
        let kind = Kind::new("example.com/v1", "Gateway");
        project(&mut object, &kind, &served, &TargetKinds::new([gateways]));
        assert_eq!(
            object,
            json!({
                "apiVersion": "example.com/v1", "kind": "Gateway", "metadata": {"name": "g", "labels": {"a": "b"}},
                "spec": {
                    "tls": {"ca": "a"},
                    "backends": [{}, {"name": "b", "client": {"url": "https://b", "caBundle": "c"}}],
                },
            })
        );
    }
}
