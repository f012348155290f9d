//! Trimming of objects for the index: large fields that no controller reads are dropped. Most watched objects
//! can be written by tenants, and may have any size.

use std::io;

use serde_json::{Map, Value, json};
use windlass_object::{ObjectKey, names, object};
use windlass_trust::injection::{TargetKinds, relevant_fields};

use crate::{
    apply::replicas::{is_scaled, trimmed_fields},
    kind::{Kind, kinds},
    projection::{is_indivisible, is_windlass_name, name_and_marks, project},
};

/// Kinds of which some applied fields are always dropped.
const TRIMMED_KINDS: [Kind; 2] = [kinds::CUSTOM_RESOURCE_DEFINITION, kinds::CONFIG_MAP];

/// Top-level field that marks a trimmed object. No kind of Kubernetes has it.
const TRIMMED: &str = "windlass.dev/cut";

/// The value of [`TRIMMED`] in an object that is reduced to its name and marks.
const NAME_ONLY: &str = "bare";

/// The maximum size, in bytes of JSON, of an object that is kept completely because a BundleDeployment
/// applied it.
const MAX_COMPLETE: usize = 32 << 10;

/// The maximum size, in bytes of JSON, of other trimmed objects; larger ones are reduced to name and marks.
const MAX_TRIMMED: usize = 128 << 10;

/// The maximum size, in bytes of JSON, of a trimmed Secret with the label of our Secrets, which any tenant
/// may set. Our Secrets hold a trust bundle.
const MAX_LABELLED: usize = 64 << 10;

/// The maximum length, in bytes, of annotations that are not Windlass's.
const MAX_ANNOTATION: usize = 1 << 10;

/// Annotation with a copy of the object that `kubectl apply` sent last.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Reports whether `seen`, from the index, has all fields that can be applied.
pub(crate) fn is_whole(seen: &Value, kind: &Kind) -> bool {
    !TRIMMED_KINDS.contains(kind) && seen.get(TRIMMED).is_none()
}

/// Reports whether an object from the index is reduced to its name and marks.
pub(crate) fn is_name_only(seen: &Value) -> bool {
    seen.get(TRIMMED).is_some_and(|mark| mark == NAME_ONLY)
}

/// Trims an object for the index. Objects that a BundleDeployment applied stay complete, unless they are
/// large: they are compared with the desired objects. Only the Secret `served` keeps its private key.
/// Controllers read further fields from the API server.
pub(crate) fn trim(
    mut object: Value,
    kind: &Kind,
    served: &ObjectKey,
    targets: &TargetKinds,
) -> Option<Value> {
    object.as_object()?;
    object["apiVersion"] = Value::from(kind.api_version.as_ref());
    object["kind"] = Value::from(kind.kind.as_ref());
    trim_managed_fields(&mut object, kind, targets);
    let is_labelled = object::label(&object, names::BUNDLE_DEPLOYMENT).is_some();
    let is_applied = is_labelled && object::annotation(&object, names::APPLIED_HASH).is_some();
    if is_applied && !TRIMMED_KINDS.contains(kind) && size(&object) <= MAX_COMPLETE {
        return Some(object);
    }
    shorten_annotations(&mut object);
    project(&mut object, kind, served, targets);
    let is_indivisible = is_indivisible(kind);
    let is_name_only = !is_indivisible && size(&object) > max_size(&object, kind);
    if is_name_only {
        object = name_and_marks(object);
    }
    if is_labelled || !is_indivisible {
        object[TRIMMED] = if is_name_only {
            NAME_ONLY.into()
        } else {
            true.into()
        };
    }
    Some(object)
}

/// Returns the maximum trimmed size of an object.
fn max_size(object: &Value, kind: &Kind) -> usize {
    let is_labelled = || object::label(object, names::SERVING_CERTIFICATE).is_some();
    match *kind == kinds::SECRET && is_labelled() {
        true => MAX_LABELLED,
        false => MAX_TRIMMED,
    }
}

/// Trims the field sets of managed fields to what injections read, and the replicas of Deployments. The
/// entries themselves stay, so that patches can refer to them by index.
fn trim_managed_fields(object: &mut Value, kind: &Kind, targets: &TargetKinds) {
    let entries = object::items(object, "/metadata/managedFields").iter();
    let kept: Vec<_> = entries
        .map(|entry| {
            let scaled = || trimmed_fields(entry.get("fieldsV1")?).filter(|_| is_scaled(kind));
            relevant_fields(object, entry, targets)
                .or_else(scaled)
                .or_else(|| handler_fields(kind, entry))
        })
        .collect();
    let Some(Value::Array(entries)) = object.pointer_mut("/metadata/managedFields") else {
        return;
    };
    for (entry, kept) in entries.iter_mut().zip(kept) {
        let Some(entry) = entry.as_object_mut() else {
            continue;
        };
        entry.remove("fieldsV1");
        if let Some(kept) = kept {
            entry.insert("fieldsV1".to_owned(), kept);
        }
    }
}

/// Returns the part of a field set that shows who writes the handlers of an ExtensionConfig.
fn handler_fields(kind: &Kind, entry: &Value) -> Option<Value> {
    let handlers = entry.pointer("/fieldsV1/f:status/f:handlers");
    let is_config = kind.kind == kinds::EXTENSION_CONFIG.kind;
    (is_config && handlers.is_some()).then(|| json!({ "f:status": { "f:handlers": {} } }))
}

/// Drops long annotations that are not Windlass's. The map itself stays: patches add annotations to it.
fn shorten_annotations(object: &mut Value) {
    if let Some(annotations) = annotations(object) {
        annotations.retain(|name, value| {
            let is_long = value.as_str().is_some_and(|text| text.len() > MAX_ANNOTATION);
            name != LAST_APPLIED && (!is_long || is_windlass_name(name))
        });
    }
}

fn annotations(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.pointer_mut("/metadata/annotations")?.as_object_mut()
}

/// Returns the size of an object in bytes of JSON.
fn size(object: &Value) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Neither counting nor serializing a `Value` can fail.
    let _ = serde_json::to_writer(&mut count, object);
    count.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::{Selector, Watch};

    fn trimmed(object: Value, kind: &Kind) -> Value {
        let served = kinds::SECRET.object(Some("windlass-system"), "windlass-cert");
        trim(object, kind, &served, &TargetKinds::default()).unwrap()
    }

    #[test]
    fn crds_are_trimmed_of_schemas_and_field_sets() {
        let trimmed = trimmed(
            json!({
                "metadata": {
                    "name": "widgets.example.com",
                    "managedFields": [
                        {"manager": "m", "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {}}},
                        {"manager": "n", "operation": "Update", "fieldsV1": {"f:spec": {"f:caBundle": {}, "f:group": {}}}},
                    ]
                },
                "spec": {"versions": [{"name": "v1", "served": true, "schema": {"openAPIV3Schema": {}}}]}
            }),
            &kinds::CUSTOM_RESOURCE_DEFINITION,
        );
        assert_eq!(
            trimmed["spec"]["versions"],
            json!([{"name": "v1", "served": true}])
        );
        assert_eq!(trimmed["metadata"]["managedFields"][0]["manager"], "m");
        assert!(trimmed["metadata"]["managedFields"][0].get("fieldsV1").is_none());
        let owner = &trimmed["metadata"]["managedFields"][1];
        assert_eq!(owner["fieldsV1"], json!({"f:caBundle": {}}));
        assert_eq!(trimmed["kind"], "CustomResourceDefinition");
        assert!(!is_whole(&trimmed, &kinds::CUSTOM_RESOURCE_DEFINITION));
    }

    #[test]
    fn the_owner_of_replicas_is_kept() {
        let object = json!({"metadata": {"name": "a", "managedFields": [
            {"manager": "kubectl", "operation": "Update", "subresource": "scale", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
            {"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {"f:paused": {}}}},
        ]}});
        let fields = |kind: &Kind| {
            let trimmed = trimmed(object.clone(), kind);
            [0, 1].map(|entry| trimmed["metadata"]["managedFields"][entry]["fieldsV1"].clone())
        };
        let replicas = json!({"f:spec": {"f:replicas": {}}});
        assert_eq!(fields(&kinds::DEPLOYMENT), [replicas, Value::Null]);
        assert_eq!(fields(&kinds::SERVICE), [Value::Null, Value::Null]);
    }

    #[test]
    fn the_owner_of_handlers_is_kept() {
        let object = json!({"metadata": {"name": "a", "managedFields": [
            {"manager": "manager", "operation": "Update", "subresource": "status",
                "fieldsV1": {"f:status": {"f:handlers": {"k:{\"name\":\"a\"}": {}}, "f:conditions": {}}}},
        ]}});
        let fields =
            |kind: &Kind| trimmed(object.clone(), kind)["metadata"]["managedFields"][0]["fieldsV1"].clone();
        let handlers = json!({"f:status": {"f:handlers": {}}});
        assert_eq!(fields(&kinds::EXTENSION_CONFIG), handlers);
        assert_eq!(fields(&kinds::SERVICE), Value::Null);
    }

    #[test]
    fn applied_objects_stay_complete_unless_large() {
        let applied = |kind: &Kind, text: usize| {
            json!({
                "apiVersion": kind.api_version, "kind": kind.kind,
                "metadata": {
                    "name": "a", "namespace": "n", "labels": {names::BUNDLE_DEPLOYMENT: "a"},
                    "annotations": {LAST_APPLIED: "{}", names::APPLIED_HASH: "0", "example.com/note": "x".repeat(text)},
                },
                "spec": {"selector": {"app": "a"}}, "data": {"key": "aGlkZGVu"},
            })
        };
        let role = Kind::new("rbac.authorization.k8s.io/v1", "Role");
        for kind in [kinds::SERVICE, kinds::SECRET, kinds::DEPLOYMENT, role.clone()] {
            let object = applied(&kind, 2000);
            let seen = trimmed(object.clone(), &kind);
            assert_eq!(seen, object);
            assert!(is_whole(&seen, &kind), "{kind}");
        }
        for (kind, text) in [
            (kinds::SERVICE, MAX_COMPLETE),
            (kinds::SECRET, MAX_COMPLETE),
            (role, MAX_COMPLETE),
            (kinds::DEPLOYMENT, MAX_COMPLETE),
        ] {
            let seen = trimmed(applied(&kind, text), &kind);
            assert!(!is_whole(&seen, &kind), "{kind}");
            assert!(size(&seen) < 500, "{seen}");
            assert_eq!(object::label(&seen, names::BUNDLE_DEPLOYMENT), Some("a"));
        }
    }

    #[test]
    fn only_long_annotations_of_windlass_are_kept() {
        let hooks = kinds::VALIDATING_WEBHOOK_CONFIGURATION;
        let long = "x".repeat(MAX_ANNOTATION + 1);
        let seen = trimmed(
            json!({"metadata": {"name": "w", "annotations": {
                LAST_APPLIED: "{}", "example.com/long": long, "example.com/short": "a", names::INJECT_CA_FROM: long,
            }}}),
            &hooks,
        );
        let annotations = json!({"example.com/short": "a", names::INJECT_CA_FROM: long});
        assert_eq!(seen["metadata"]["annotations"], annotations);
        let last = trimmed(
            json!({"metadata": {"name": "w", "annotations": {LAST_APPLIED: "{}"}}}),
            &hooks,
        );
        assert_eq!(last["metadata"]["annotations"], json!({}), "the map stays");
    }

    #[test]
    fn objects_of_tenants_are_trimmed_to_a_limit() {
        let many = |prefix: &str| -> Map<String, Value> {
            (0..10_000)
                .map(|index| (format!("{prefix}/{index}"), Value::from("x".repeat(60))))
                .collect()
        };
        let ports: Vec<_> = (0..10_000)
            .map(|port| json!({"name": format!("port-{port}"), "port": port}))
            .collect();
        for (kind, object) in [
            (
                kinds::SERVICE,
                json!({"metadata": {"labels": many("example.com")}}),
            ),
            (
                kinds::SERVICE,
                json!({"metadata": {"annotations": many("windlass.dev")}}),
            ),
            (kinds::SERVICE, json!({"spec": {"selector": many("example.com")}})),
            (kinds::SERVICE, json!({"spec": {"ports": ports}})),
            (kinds::SECRET, json!({"data": {"ca.crt": "x".repeat(1 << 20)}})),
            (kinds::SECRET, json!({"data": many("a")})),
            (kinds::POD, json!({"spec": many("a")})),
            (
                kinds::DEPLOYMENT,
                json!({"spec": {"template": {"spec": many("a")}}}),
            ),
            (kinds::DEPLOYMENT, json!({"status": many("a")})),
        ] {
            let mut object = object;
            object["metadata"]["name"] = "a".into();
            object["metadata"]["labels"][names::BUNDLE_DEPLOYMENT] = "a".into();
            let seen = trimmed(object, &kind);
            assert!(size(&seen) <= MAX_TRIMMED, "{kind}: {}", size(&seen));
            assert_eq!(object::label(&seen, names::BUNDLE_DEPLOYMENT), Some("a"));
        }
    }

    #[test]
    fn secrets_with_our_label_have_a_lower_limit() {
        let secret = |label: &str, bundle: usize| {
            let secret = json!({
                "metadata": {"namespace": "n", "name": "s", "labels": {label: "a"}},
                "data": {"ca.crt": "x".repeat(bundle), "token": "x".repeat(900_000)},
            });
            trimmed(secret, &kinds::SECRET)
        };
        let seen = secret(names::SERVING_CERTIFICATE, 100_000);
        assert!(size(&seen) < 1000, "{}", size(&seen));
        assert_eq!(object::label(&seen, names::SERVING_CERTIFICATE), Some("a"));
        for (label, bundle) in [(names::SERVING_CERTIFICATE, 51_200), ("app", 100_000)] {
            let seen = secret(label, bundle);
            assert_eq!(object::text(&seen, "/data/ca.crt").map(str::len), Some(bundle));
        }
    }

    #[test]
    fn config_maps_that_are_targets_are_kept() {
        let watch = Watch::all(kinds::CONFIG_MAP).selected(Selector::Targets);
        let config_map = |annotations: Value, manager: &str| {
            json!({
                "metadata": {"namespace": "n", "name": "c", "annotations": annotations, "managedFields": [{
                    "manager": manager, "operation": "Update", "fieldsV1": {"f:data": {"f:ca-bundle.crt": {}}},
                }]},
                "data": {"ca-bundle.crt": "", "other": "x".repeat(1 << 20)},
            })
        };
        let asking = json!({names::INJECT_CA_FROM: "n/hook"});
        let mut large: Map<String, Value> = (0..MAX_TRIMMED / MAX_ANNOTATION)
            .map(|index| {
                (
                    format!("windlass.dev/{index}"),
                    Value::from("x".repeat(MAX_ANNOTATION)),
                )
            })
            .collect();
        large.insert(names::INJECT_CA_FROM.to_owned(), "n/hook".into());
        for (annotations, manager, is_kept) in [
            (asking, "kubectl", true),
            (json!({}), names::INJECT, true),
            (json!({}), "kubectl", false),
            (Value::Object(large), "kubectl", false),
        ] {
            let seen = trimmed(config_map(annotations, manager), &kinds::CONFIG_MAP);
            assert_eq!(watch.keeps(&seen, &TargetKinds::default()), is_kept, "{manager}");
            assert!(
                size(&seen) < MAX_TRIMMED && seen.get("data").is_some(),
                "it does not count as empty"
            );
        }
        assert!(!watch.is_essential());
    }
}
