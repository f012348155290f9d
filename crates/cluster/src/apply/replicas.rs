//! Ownership of a Deployment's replicas.
//!
//! An autoscaler or `kubectl scale` writes `spec.replicas` and so owns it. Windlass then gives the field up
//! by applying the rest without it: server-side apply keeps a field that another manager owns.

use serde_json::{Value, json};
use windlass_object::{names, object};

use crate::kind::{Kind, kinds};

/// The path of `spec.replicas` in a set of fields (`fieldsV1`).
const OWNED: &str = "/f:spec/f:replicas";

/// Reports whether other clients may scale objects of a kind.
pub(crate) fn is_scaled(kind: &Kind) -> bool {
    *kind == kinds::DEPLOYMENT
}

/// Returns the part of a set of fields that [`belong_to_another_manager`] needs, for the index.
pub(crate) fn trimmed_fields(fields: &Value) -> Option<Value> {
    fields.pointer(OWNED)?;
    Some(json!({"f:spec": {"f:replicas": {}}}))
}

/// Reports whether another manager owns `spec.replicas` of a live object.
fn belong_to_another_manager(live: &Value) -> bool {
    owners(live).any(|manager| manager != Some(names::INSTALL))
}

/// Reports whether installs own `spec.replicas` of a live object.
pub(super) fn are_owned_by_windlass(live: &Value) -> bool {
    owners(live).any(|manager| manager == Some(names::INSTALL))
}

/// Returns the managers that own `spec.replicas` of a live object.
fn owners(live: &Value) -> impl Iterator<Item = Option<&str>> {
    let entries = object::items(live, "/metadata/managedFields").iter();
    let owning = entries.filter(|entry| {
        let fields = entry.get("fieldsV1");
        fields.is_some_and(|fields| fields.pointer(OWNED).is_some())
    });
    owning.map(|entry| object::text(entry, "/manager"))
}

/// Reports whether the replicas of `body` are left to their owner in `live`.
pub(super) fn are_left_to_owner(body: &Value, live: &Value) -> bool {
    object::text(body, "/kind") == Some(&*kinds::DEPLOYMENT.kind) && belong_to_another_manager(live)
}

/// Removes the replicas from `body` if another manager owns them in `live`.
pub(super) fn leave_to_owner(body: &mut Value, live: &Value) {
    if are_left_to_owner(body, live)
        && let Some(spec) = body.get_mut("spec").and_then(Value::as_object_mut)
    {
        spec.shift_remove("replicas");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, subresource: &str, fields: Value) -> Value {
        json!({"manager": manager, "operation": "Update", "subresource": subresource, "fieldsV1": fields})
    }

    #[test]
    fn replicas_are_left_to_their_scaler() {
        let replicas = || json!({"f:spec": {"f:replicas": {}}});
        let status = json!({"f:status": {"f:replicas": {}}});
        for (entries, expected) in [
            (vec![], true),
            (vec![entry("windlass-install", "", replicas())], true),
            (vec![entry("kube-controller-manager", "status", status)], true),
            (vec![entry("kube-controller-manager", "scale", replicas())], false),
            (vec![entry("kubectl", "scale", replicas())], false),
            (
                vec![
                    entry("windlass-install", "", replicas()),
                    entry("kubectl-edit", "", replicas()),
                ],
                false,
            ),
        ] {
            let live = json!({"metadata": {"managedFields": entries}});
            let mut body = json!({"kind": "Deployment", "spec": {"replicas": 1, "paused": false}});
            leave_to_owner(&mut body, &live);
            assert_eq!(body["spec"].get("replicas").is_some(), expected, "{live}");
            assert_eq!(body["spec"]["paused"], false);
        }
    }

    #[test]
    fn trimmed_field_sets_show_the_owner_of_replicas() {
        let fields = json!({"f:metadata": {}, "f:spec": {"f:replicas": {}, "f:paused": {}}});
        let kept = trimmed_fields(&fields).unwrap();
        assert_eq!(kept, json!({"f:spec": {"f:replicas": {}}}));
        assert!(belong_to_another_manager(
            &json!({"metadata": {"managedFields": [{"manager": "m", "fieldsV1": kept}]}})
        ));
        assert_eq!(trimmed_fields(&json!({"f:spec": {"f:paused": {}}})), None);
    }
}
