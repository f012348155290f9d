//! Compares live and desired webhooks, and removes what is no longer needed, which requires no proof.

use serde_json::Value;
use windlass_object::object;

const CA_BUNDLE: &str = "/clientConfig/caBundle";

/// Reports whether live and desired webhooks are equal except for their CA bundles.
pub(super) fn are_equal(live: &[Value], desired: &[Value]) -> bool {
    live.len() == desired.len()
        && live
            .iter()
            .zip(desired)
            .all(|(live, desired)| without_ca_bundle(live) == without_ca_bundle(desired))
}

/// Returns `desired` with the live CA bundles, or with `ca_bundle` where there is none.
pub(super) fn with_ca_bundles(desired: Vec<Value>, live: &[Value], ca_bundle: &str) -> Vec<Value> {
    let bundle_of = |webhook: &Value| {
        let bundle = object::text(webhook, CA_BUNDLE).filter(|bundle| !bundle.is_empty());
        bundle.map(str::to_owned)
    };
    let add_bundle = |mut webhook: Value| {
        let same = live.iter().find(|live| live["name"] == webhook["name"]);
        let bundle = same.and_then(bundle_of);
        webhook["clientConfig"]["caBundle"] = bundle.as_deref().unwrap_or(ca_bundle).into();
        webhook
    };
    desired.into_iter().map(add_bundle).collect()
}

/// Returns the live webhooks that are still desired, each with the desired rules if these select less.
pub(super) fn pruned(live: &[Value], desired: &[Value]) -> Vec<Value> {
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

/// Reports whether two webhooks differ only in rules, and those of `narrow` select a subset.
fn is_narrower(narrow: &Value, wide: &Value) -> bool {
    let without_rules = |webhook: &Value| {
        let mut webhook = without_ca_bundle(webhook);
        webhook["rules"].take();
        webhook
    };
    let wide_rules = object::items(wide, "/rules");
    without_rules(narrow) == without_rules(wide)
        && object::items(narrow, "/rules")
            .iter()
            .all(|rule| wide_rules.iter().any(|wide| covers(wide, rule)))
}

/// Reports whether `wide` selects everything that `narrow` selects.
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

fn without_ca_bundle(webhook: &Value) -> Value {
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
    fn only_the_ca_bundle_may_differ_between_equal_webhooks() {
        let one = [webhook("a", &["pods"], "x")];
        assert!(are_equal(&one, &[webhook("a", &["pods"], "y")]));
        assert!(!are_equal(&one, &[webhook("a", &["secrets"], "x")]));
        assert!(!are_equal(&one, &[]));
    }

    #[test]
    fn a_new_webhook_gets_the_ca_bundle_and_others_keep_theirs() {
        let live = [webhook("a", &["pods"], "x")];
        let desired = vec![webhook("a", &["secrets"], ""), webhook("b", &["pods"], "")];
        let add_bundle = with_ca_bundles(desired, &live, "y");
        let bundles: Vec<_> = add_bundle
            .iter()
            .map(|webhook| &webhook["clientConfig"]["caBundle"])
            .collect();
        assert_eq!(bundles, ["x", "y"]);
    }

    #[test]
    fn pruning_adds_nothing() {
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
            pruned(&live, &desired),
            [webhook("narrow", &["pods"], "x"), webhook("wide", &["pods"], "x")]
        );
    }
}
