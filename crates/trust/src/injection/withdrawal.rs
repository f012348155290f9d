//! Removes injected CA bundles that are no longer requested.

use json_patch::{Patch, PatchOperation};
use serde_json::{Value, json};
use windlass_object::{
    names, object,
    patch::{self, test},
};

use super::{
    holder::Holder,
    kinds::TargetKinds,
    writer::{field, injection_owns_bundle, is_of_injections, is_of_spec},
};

/// Reports whether `target` has an injected CA bundle, as far as its trimmed field sets show.
pub fn has_injected_bundle(target: &Value, kinds: &TargetKinds) -> bool {
    is_marked(target) || injection_owns_bundle(target, kinds)
}

/// Reports whether an annotation marks the CA bundle as injected and released: no field manager owns it.
fn is_marked(target: &Value) -> bool {
    object::annotation(target, names::INJECTED).is_some()
}

/// Returns the patch that removes the CA bundles that only the injection owns, or `None` if there are none.
/// `target` must have complete field sets.
pub fn withdrawal(target: &Value, kinds: &TargetKinds) -> Option<Patch> {
    let holders = kinds.kind_of(target)?.holders(target).into_iter();
    let ours = holders.filter(|holder| holder.has_ca_bundle() && is_owned_by_injection_only(target, holder));
    let mut operations: Vec<_> = ours.flat_map(|holder| remove(&holder)).collect();
    let unmarked = json!({ names::INJECTED: null });
    operations.extend(patch::changed_entries(target, "/metadata/annotations", &unmarked));
    (!operations.is_empty()).then_some(Patch(operations))
}

/// Removes a CA bundle, provided that its place is unchanged.
fn remove(holder: &Holder<'_>) -> Vec<PatchOperation> {
    let guards = holder.guards.iter();
    let mut operations: Vec<_> = guards.map(|(path, value)| test(path, value)).collect();
    operations.push(patch::remove(&holder.field()));
    operations
}

fn is_owned_by_injection_only(target: &Value, holder: &Holder<'_>) -> bool {
    let entries = object::items(target, "/metadata/managedFields").iter();
    let mut owners = entries
        .filter(|entry| is_of_spec(entry) && owns(entry, holder))
        .peekable();
    (owners.peek().is_some() || is_marked(target)) && owners.all(is_of_injections)
}

/// Reports whether an entry of `managedFields` owns the CA bundle of a place. An atomic list is owned as a
/// whole.
fn owns(entry: &Value, holder: &Holder<'_>) -> bool {
    let place = holder.place;
    let Some(mut fields) = entry.get("fieldsV1") else {
        return false;
    };
    if let Some(list) = &place.list {
        let Some(items) = field(fields, list) else {
            return false;
        };
        if items.as_object().is_some_and(serde_json::Map::is_empty) {
            return true;
        }
        let Some(item) = holder.entry.and_then(|name| item(items, name)) else {
            return false;
        };
        fields = item;
    }
    let Some(held) = field(fields, &place.holder) else {
        return false;
    };
    held.get(format!("f:{}", place.field)).is_some()
}

/// Returns the field set of the item with this name in a list keyed by name.
fn item<'a>(items: &'a Value, name: &str) -> Option<&'a Value> {
    let key = json!({"name": name});
    let mut items = items.as_object()?.iter();
    let is_it = |set: &str| {
        let set = set.strip_prefix("k:");
        set.is_some_and(|set| serde_json::from_str::<Value>(set).is_ok_and(|set| set == key))
    };
    items.find_map(|(set, fields)| is_it(set).then_some(fields))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configuration(entries: &Value) -> Value {
        let webhook = |name: &str, bundle: &str| {
            json!({"name": name, "clientConfig": {
                "service": {"namespace": "system", "name": "hook"}, "caBundle": bundle,
            }})
        };
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "target", "managedFields": entries},
            "webhooks": [webhook("a", "YQ=="), webhook("b", "Yg==")],
        })
    }

    fn entry(manager: &str, operation: &str, names: &[&str]) -> Value {
        let owned = json!({"f:clientConfig": {"f:caBundle": {}}});
        let webhooks: serde_json::Map<_, _> = names
            .iter()
            .map(|name| (format!("k:{{\"name\":\"{name}\"}}"), owned.clone()))
            .collect();
        json!({"manager": manager, "operation": operation, "fieldsV1": {"f:webhooks": webhooks}})
    }

    #[test]
    fn a_bundle_owned_only_by_the_injection_is_removed() {
        let kinds = TargetKinds::default();
        for (entries, left) in [
            (
                json!([entry(names::INJECT, "Update", &["a", "b"])]),
                [false, false],
            ),
            (json!([entry(names::INJECT, "Update", &["a"])]), [false, true]),
            (
                json!([
                    entry(names::INJECT, "Update", &["a", "b"]),
                    entry("helm", "Apply", &["b"])
                ]),
                [false, true],
            ),
            (
                json!([entry("kubectl-edit", "Update", &["a", "b"])]),
                [true, true],
            ),
            (json!(null), [true, true]),
        ] {
            let target = configuration(&entries);
            let patch = withdrawal(&target, &kinds);
            assert_eq!(patch.is_some(), left.contains(&false), "{entries}");
            let mut patched = target.clone();
            if let Some(patch) = patch {
                assert!(has_injected_bundle(&target, &kinds));
                json_patch::patch(&mut patched, &patch).unwrap();
                let mut moved = target.clone();
                moved["webhooks"].as_array_mut().unwrap().swap(0, 1);
                assert!(json_patch::patch(&mut moved, &patch).is_err());
            }
            for (webhook, is_left) in [0, 1].into_iter().zip(left) {
                let bundle = patched["webhooks"][webhook]["clientConfig"].get("caBundle");
                assert_eq!(bundle.is_some(), is_left, "{entries}");
            }
        }
    }

    #[test]
    fn bundles_in_atomic_lists_and_released_bundles_are_found() {
        let kinds = TargetKinds::default();
        let owned =
            json!({"f:spec": {"f:conversion": {"f:webhook": {"f:clientConfig": {"f:caBundle": {}}}}}});
        let client_config = json!({"service": {"namespace": "system", "name": "hook"}, "caBundle": "YQ=="});
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "target", "managedFields": [
                {"manager": names::INJECT, "operation": "Update", "fieldsV1": owned},
            ]},
            "spec": {"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": client_config}}},
        });
        let atomic = json!({
            "apiVersion": "config.karmada.io/v1alpha1", "kind": "ResourceInterpreterWebhookConfiguration",
            "metadata": {"name": "target", "managedFields": [
                {"manager": names::INJECT, "operation": "Update", "fieldsV1": {"f:webhooks": {}}},
            ]},
            "webhooks": [{"name": "a", "clientConfig": client_config}],
        });
        let mut released = definition.clone();
        released["metadata"]["managedFields"] = json!([]);
        assert_eq!(withdrawal(&released, &kinds), None);
        released["metadata"]["annotations"] = json!({names::INJECTED: "true"});
        for target in [definition, atomic, released] {
            assert!(has_injected_bundle(&target, &kinds));
            let mut patched = target.clone();
            json_patch::patch(&mut patched, &withdrawal(&target, &kinds).unwrap()).unwrap();
            assert!(!patched.to_string().contains("\"caBundle\""), "{patched}");
            assert_eq!(withdrawal(&patched, &kinds), None);
        }
    }
}
