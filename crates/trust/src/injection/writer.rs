//! Who wrote a target.

use serde_json::Value;
use windlass_object::{names, object};

/// Our own field managers, which write targets: never the ones that take a trust bundle away.
const OURS: [&str; 3] = [names::INSTALL, names::INJECT, names::CONVERSION];

/// The field manager that wrote the CA bundle of `target` last and is not ours, or that wrote anything of its spec last
/// where nobody owns a CA bundle: who takes a field away is not told by `metadata.managedFields`.
pub fn last_writer(target: &Value) -> Option<&str> {
    let entries = object::items(target, "/metadata/managedFields").iter();
    let others = entries.filter(|entry| {
        let is_of_spec = object::text(entry, "/subresource").unwrap_or_default().is_empty();
        let is_ours = object::text(entry, "/manager").is_some_and(|manager| OURS.contains(&manager));
        is_of_spec && !is_ours
    });
    let last = others.max_by_key(|entry| {
        let owns_it = entry.get("fieldsV1").is_some_and(owns_ca_bundle);
        // In RFC 3339 with the same offset, later is greater.
        (owns_it, object::text(entry, "/time"))
    })?;
    object::text(last, "/manager")
}

/// Whether a set of fields (`fieldsV1` of an entry in `metadata.managedFields`) holds a CA bundle.
pub fn owns_ca_bundle(fields: &Value) -> bool {
    let Some(fields) = fields.as_object() else {
        return false;
    };
    fields.contains_key("f:caBundle") || fields.values().any(owns_ca_bundle)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(manager: &str, time: &str, fields: Value) -> Value {
        json!({"manager": manager, "operation": "Update", "time": time, "fieldsV1": fields})
    }

    #[test]
    fn the_owner_of_the_ca_bundle_comes_before_whoever_wrote_later() {
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
}
