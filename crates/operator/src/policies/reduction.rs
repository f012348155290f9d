//! Comparing webhooks with those that are there, and taking away what is not needed any more: that needs no proof.

use serde_json::Value;
use windlass_object::object;

const CA_BUNDLE: &str = "/clientConfig/caBundle";

/// Whether the webhooks that are there are these, whatever their CA bundles.
pub(super) fn are_same(live: &[Value], desired: &[Value]) -> bool {
    live.len() == desired.len()
        && live
            .iter()
            .zip(desired)
            .all(|(live, desired)| without_bundle(live) == without_bundle(desired))
}

/// `desired` with the CA bundles that are there; where there is none, with `ca_bundle`.
pub(super) fn with_bundles(desired: Vec<Value>, live: &[Value], ca_bundle: &str) -> Vec<Value> {
    let bundle_of = |webhook: &Value| {
        let bundle = object::text(webhook, CA_BUNDLE).filter(|bundle| !bundle.is_empty());
        bundle.map(str::to_owned)
    };
    let put = |mut webhook: Value| {
        let same = live.iter().find(|live| live["name"] == webhook["name"]);
        let bundle = same.and_then(bundle_of);
        webhook["clientConfig"]["caBundle"] = bundle.as_deref().unwrap_or(ca_bundle).into();
        webhook
    };
    desired.into_iter().map(put).collect()
}

/// Those of the webhooks that are there which are still desired, each with as little as is desired of it.
pub(super) fn reduced(live: &[Value], desired: &[Value]) -> Vec<Value> {
    live.iter()
        .filter_map(|live| {
            let desired = desired.iter().find(|desired| desired["name"] == live["name"])?;
            let mut webhook = live.clone();
            if is_narrower(desired, live) {
                webhook["rules"] = desired["rules"].clone();
            }
            Some(webhook)
        })
        .collect()
}

/// Whether a webhook differs from another in nothing but that its rules take less.
fn is_narrower(narrow: &Value, wide: &Value) -> bool {
    let beside_rules = |webhook: &Value| {
        let mut webhook = without_bundle(webhook);
        webhook["rules"].take();
        webhook
    };
    let wide_rules = object::items(wide, "/rules");
    beside_rules(narrow) == beside_rules(wide)
        && object::items(narrow, "/rules")
            .iter()
            .all(|rule| wide_rules.iter().any(|wide| covers(wide, rule)))
}

/// Whether a rule takes all that another takes.
fn covers(wide: &Value, narrow: &Value) -> bool {
    let lists = ["/apiGroups", "/apiVersions", "/resources", "/operations"];
    wide["scope"] == narrow["scope"]
        && lists.iter().all(|list| {
            let held = object::items(wide, list);
            object::items(narrow, list)
                .iter()
                .all(|item| held.contains(item) || held.iter().any(|any| any == "*"))
        })
}

fn without_bundle(webhook: &Value) -> Value {
    let mut webhook = webhook.clone();
    if let Some(Value::Object(client)) = webhook.pointer_mut("/clientConfig") {
        client.shift_remove("caBundle");
    }
    webhook
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn webhook(name: &str, resources: &[&str], bundle: &str) -> Value {
        json!({
            "name": name, "clientConfig": {"caBundle": bundle, "service": {"name": "s"}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": resources, "operations": ["CREATE"], "scope": "*"}],
        })
    }

    #[test]
    fn a_bundle_makes_no_difference_and_anything_else_does() {
        let one = [webhook("a", &["pods"], "x")];
        assert!(are_same(&one, &[webhook("a", &["pods"], "y")]));
        assert!(!are_same(&one, &[webhook("a", &["secrets"], "x")]));
        assert!(!are_same(&one, &[]));
    }

    #[test]
    fn what_is_new_is_trusted_and_what_is_there_keeps_its_bundle() {
        let live = [webhook("a", &["pods"], "x")];
        let desired = vec![webhook("a", &["secrets"], ""), webhook("b", &["pods"], "")];
        let put = with_bundles(desired, &live, "y");
        let bundles: Vec<_> = put
            .iter()
            .map(|webhook| &webhook["clientConfig"]["caBundle"])
            .collect();
        assert_eq!(bundles, ["x", "y"]);
    }

    #[test]
    fn without_proof_nothing_is_added() {
        let live = [
            webhook("gone", &["pods"], "x"),
            webhook("narrow", &["pods", "secrets"], "x"),
            webhook("wide", &["pods"], "x"),
        ];
        let desired = [
            webhook("narrow", &["pods"], ""),
            webhook("wide", &["pods", "secrets"], ""),
            webhook("new", &["pods"], ""),
        ];
        assert_eq!(
            reduced(&live, &desired),
            [webhook("narrow", &["pods"], "x"), webhook("wide", &["pods"], "x")]
        );
    }
}
