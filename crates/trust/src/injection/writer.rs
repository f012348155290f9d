//! Who wrote a target, and who owns its fields.

use json_patch::Patch;
use serde_json::{Map, Value, json};
use windlass_object::{
    ca_injectors::{CaInjector, CaInjectors},
    names, object, patch,
};

use super::{ManagedElsewhere, TargetKind, TargetKinds};

/// Field managers of Windlass. None of them removes a trust bundle.
const OURS: [&str; 3] = [names::INSTALL, names::INJECT, names::CONVERSION];

/// Returns the last foreign field manager that wrote the CA bundle of `target`. If none owns it, returns the
/// last one that wrote the spec, because `metadata.managedFields` does not show who removed a field.
pub fn last_writer(target: &Value) -> Option<&str> {
    let entries = object::items(target, "/metadata/managedFields").iter();
    let others = entries.filter(|entry| {
        let is_ours = object::text(entry, "/manager").is_some_and(|manager| OURS.contains(&manager));
        is_of_spec(entry) && !is_ours
    });
    let last = others.max_by_key(|entry| {
        let owns_it = entry
            .get("fieldsV1")
            .is_some_and(|fields| owns_ca_bundle(fields, None));
        // RFC 3339 times with the same offset sort as text.
        (owns_it, object::text(entry, "/time"))
    })?;
    object::text(last, "/manager")
}

/// Returns which of `injectors` wrote the CA bundle of `target` last, at the request of the target.
pub fn last_injector(target: &Value, injectors: &CaInjectors) -> Option<CaInjector> {
    let by = last_writer(target)?;
    let is_it = |injector: &&CaInjector| {
        injector.field_managers().contains(&by) && injector.annotation_on(target).is_some()
    };
    injectors.iter().find(is_it).copied()
}

/// Returns the patch that gives up the ownership from an injection, or `None` if there is none or it blocks
/// no one. The patch changes only metadata, so nothing is rebuilt.
///
/// The ownership blocks an owner that applies the target: the API server rejects an apply with `strategy:
/// None` while another field manager owns a field of a CRD's webhook. An annotation then marks the CA bundle
/// as injected, except on objects of a BundleDeployment.
pub fn release(target: &Value, kinds: &TargetKinds) -> Option<Patch> {
    let is_ours = needs_release(target) && injection_owns_bundle(target, kinds);
    if !is_ours || ManagedElsewhere::check(target, kinds).is_err() {
        return None;
    }
    let mut patch = patch::release(target, names::INJECT)?;
    if object::label(target, names::BUNDLE_DEPLOYMENT).is_none() {
        let marked = json!({ names::INJECTED: "true" });
        patch
            .0
            .extend(patch::changed_entries(target, "/metadata/annotations", &marked));
    }
    Some(patch)
}

/// Reports whether the ownership from an injection must be given up.
pub fn needs_release(target: &Value) -> bool {
    let Some(owned) = TargetKind::from_object(target).and_then(|kind| kind.dropped_as_a_whole) else {
        return false;
    };
    let mut entries = object::items(target, "/metadata/managedFields").iter();
    entries.any(|entry| is_applied(entry) && owns(entry, owned))
}

/// Returns the part of an entry's `fieldsV1` that [`last_writer`] and [`release`] need; complete field sets
/// are large. A CA bundle is always called `caBundle` in the result.
pub fn relevant_fields(target: &Value, entry: &Value, kinds: &TargetKinds) -> Option<Value> {
    let mut relevant = json!({});
    if let Some(owned) = TargetKind::from_object(target).and_then(|kind| kind.dropped_as_a_whole)
        && is_applied(entry)
        && owns(entry, owned)
    {
        let names = owned.split('/').skip(1);
        names.fold(&mut relevant, |fields, name| {
            fields[name] = json!({});
            &mut fields[name]
        });
    }
    let kind = kinds.kind_of(target);
    if entry
        .get("fieldsV1")
        .is_some_and(|fields| owns_ca_bundle(fields, kind))
    {
        relevant["f:caBundle"] = json!({});
    }
    relevant
        .as_object()
        .is_some_and(|fields| !fields.is_empty())
        .then_some(relevant)
}

/// Reports whether the injection owns a CA bundle of `target`.
pub(super) fn injection_owns_bundle(target: &Value, kinds: &TargetKinds) -> bool {
    let kind = kinds.kind_of(target);
    let mut entries = object::items(target, "/metadata/managedFields").iter();
    let owns = |fields| owns_ca_bundle(fields, kind);
    entries.any(|entry| is_of_injections(entry) && entry.get("fieldsV1").is_some_and(owns))
}

/// Reports whether an entry of `managedFields` is from injections.
pub(super) fn is_of_injections(entry: &Value) -> bool {
    object::text(entry, "/manager") == Some(names::INJECT)
        && object::text(entry, "/operation") == Some("Update")
}

fn is_applied(entry: &Value) -> bool {
    is_of_spec(entry) && object::text(entry, "/operation") == Some("Apply")
}

/// Reports whether an entry of `managedFields` is not for a subresource.
pub(super) fn is_of_spec(entry: &Value) -> bool {
    object::text(entry, "/subresource").unwrap_or_default().is_empty()
}

fn owns(entry: &Value, fields: &str) -> bool {
    let owned = entry.get("fieldsV1");
    owned.is_some_and(|owned| owned.pointer(fields).is_some())
}

/// Reports whether a field set (`fieldsV1`) contains a CA bundle: `caBundle`, the kind's own field for it, or
/// an atomic list whose items have one.
pub(super) fn owns_ca_bundle(fields: &Value, kind: Option<&TargetKind>) -> bool {
    let places = kind.into_iter().flat_map(|kind| &kind.places);
    let mut lists = places.filter_map(|place| field(fields, place.list.as_deref()?));
    owns_field(fields, kind) || lists.any(|list| list.as_object().is_some_and(Map::is_empty))
}

fn owns_field(fields: &Value, kind: Option<&TargetKind>) -> bool {
    let Some(fields) = fields.as_object() else {
        return false;
    };
    let is_ca_bundle = |name: &str| {
        let mut places = kind.into_iter().flat_map(|kind| &*kind.places);
        name == "caBundle" || places.any(|place| place.field == name)
    };
    fields
        .iter()
        .any(|(name, inner)| name.strip_prefix("f:").is_some_and(is_ca_bundle) || owns_field(inner, kind))
}

/// Returns the field set at a path of names.
pub(super) fn field<'a>(fields: &'a Value, path: &str) -> Option<&'a Value> {
    let mut names = path.split('/').skip(1);
    names.try_fold(fields, |fields, name| fields.get(format!("f:{name}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, time: &str, fields: Value) -> Value {
        json!({"manager": manager, "operation": "Update", "time": time, "fieldsV1": fields})
    }

    #[test]
    fn the_ca_bundle_owner_wins_over_later_writers() {
        let owned = json!({"f:webhooks": {"k:{\"name\":\"a\"}": {"f:clientConfig": {"f:caBundle": {}}}}});
        let other = json!({"f:webhooks": {"k:{\"name\":\"a\"}": {"f:rules": {}}}});
        let mut status = entry("kube-controller-manager", "2026-01-01T00:00:09Z", json!({}));
        status["subresource"] = json!("status");
        let target = |entries: &[Value]| json!({"metadata": {"managedFields": entries}});
        let ours = entry(names::INJECT, "2026-01-01T00:00:08Z", owned.clone());
        let installed = entry(names::INSTALL, "2026-01-01T00:00:09Z", json!({"f:webhooks": {}}));
        let argo = entry("argocd-controller", "2026-01-01T00:00:01Z", owned);
        let kubectl = entry("kubectl", "2026-01-01T00:00:02Z", other);
        let cases = [
            (vec![], None),
            (vec![ours.clone(), status.clone()], None),
            (vec![ours.clone(), installed], None),
            (
                vec![ours.clone(), kubectl.clone(), argo.clone()],
                Some("argocd-controller"),
            ),
            (vec![kubectl, ours, status], Some("kubectl")),
        ];
        for (entries, expected) in cases {
            assert_eq!(last_writer(&target(&entries)), expected, "{entries:?}");
        }
        assert_eq!(last_writer(&json!(null)), None);
    }

    fn definition(entries: &[Value]) -> Value {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com", "managedFields": entries},
        })
    }

    #[test]
    fn ownership_is_released_if_it_would_block_an_apply() {
        let ours = entry(
            names::INJECT,
            "2026-01-01T00:00:00Z",
            json!({"f:spec": {"f:conversion": {"f:webhook": {"f:clientConfig": {"f:caBundle": {}}}}}}),
        );
        let conversion = json!({"f:spec": {"f:conversion": {"f:strategy": {}}, "f:group": {}}});
        let applied = |fields: &Value| json!({"manager": "helm", "operation": "Apply", "fieldsV1": fields});
        let updated = entry("kubectl", "2026-01-01T00:00:00Z", conversion.clone());
        let mut status = applied(&conversion);
        status["subresource"] = "status".into();
        for (entries, is_in_the_way) in [
            (vec![applied(&conversion), ours.clone()], true),
            (vec![applied(&conversion)], false),
            (
                vec![applied(&json!({"f:spec": {"f:group": {}}})), ours.clone()],
                false,
            ),
            (vec![updated, status, ours.clone()], false),
        ] {
            let target = definition(&entries);
            let patch = release(&target, &TargetKinds::default());
            assert_eq!(patch.is_some(), is_in_the_way, "{target}");
            let Some(patch) = patch else { continue };
            let mut released = target.clone();
            json_patch::patch(&mut released, &patch).unwrap();
            let mut expected = definition(&entries[..1]);
            expected["metadata"]["annotations"] = json!({names::INJECTED: "true"});
            assert_eq!(released, expected);
            assert_eq!(release(&released, &TargetKinds::default()), None);
            let mut moved = target.clone();
            moved["metadata"]["managedFields"]
                .as_array_mut()
                .unwrap()
                .swap(0, 1);
            assert!(json_patch::patch(&mut moved, &patch).is_err());
        }
        let mut managed = definition(&[applied(&conversion), ours.clone()]);
        managed["metadata"]["annotations"] = json!({"cert-manager.io/inject-ca-from": "a/b"});
        assert_eq!(release(&managed, &TargetKinds::default()), None);
        // An owner may remove a webhook regardless of who patched it.
        let mut configuration = definition(&[applied(&conversion), ours]);
        configuration["apiVersion"] = "admissionregistration.k8s.io/v1".into();
        configuration["kind"] = "ValidatingWebhookConfiguration".into();
        assert_eq!(release(&configuration, &TargetKinds::default()), None);
    }

    #[test]
    fn trimmed_field_sets_give_the_same_answers() {
        let kinds = TargetKinds::default();
        let conversion =
            json!({"f:spec": {"f:conversion": {"f:webhook": {"f:caBundle": {}}}, "f:group": {}}});
        let group = json!({"f:spec": {"f:group": {}}});
        for (operation, fields, expected) in [
            (
                "Apply",
                &conversion,
                json!({"f:spec": {"f:conversion": {}}, "f:caBundle": {}}),
            ),
            ("Update", &conversion, json!({"f:caBundle": {}})),
            ("Apply", &group, Value::Null),
        ] {
            let entry = json!({"manager": "m", "operation": operation, "fieldsV1": fields});
            let relevant = relevant_fields(&definition(&[]), &entry, &kinds);
            assert_eq!(relevant.unwrap_or_default(), expected);
        }
        assert_eq!(
            relevant_fields(&json!(null), &json!({"manager": "m"}), &kinds),
            None
        );
    }
}
