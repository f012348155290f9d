//! The patch that switches the webhooks of a configuration to other Services and preserves additions of other
//! clients.

use json_patch::PatchOperation;
use serde_json::{Value, json};
use windlass_object::{
    names, object,
    patch::{put, remove, test},
};

/// Owners of a live configuration's webhooks, from `metadata.managedFields`.
struct Ownership<'a> {
    ours: Vec<&'a Value>,
    others: Vec<&'a Value>,
}

/// Returns the operations that turn Windlass's webhooks of a live configuration into those of `armed`, with
/// their Services and rules. A webhook of Windlass whose name is not in `armed` is removed, and so is a field
/// that only Windlass owns; everything else stays.
///
/// Each changed webhook is tested by its name: the patch fails if indices have moved.
pub(super) fn switch_webhooks(live: &Value, armed: &Value) -> Vec<PatchOperation> {
    let webhooks = object::items(live, "/webhooks");
    let desired = object::items(armed, "/webhooks");
    if webhooks.is_empty() {
        return vec![put("/webhooks", desired.into())];
    }
    let ownership = Ownership::from_object(live);
    let (mut tests, mut changes, mut removed) = (Vec::new(), Vec::new(), Vec::new());
    for (index, webhook) in webhooks.iter().enumerate() {
        let path = format!("/webhooks/{index}");
        // Old API servers accepted duplicate names.
        let is_first = named(&webhooks[..index], webhook).is_none();
        match named(desired, webhook) {
            Some(desired) if is_first => changes.extend(webhook_changes(&path, webhook, desired, &ownership)),
            None if !ownership.has_webhook(webhook) => continue,
            _ => removed.push(remove(&path)),
        }
        tests.push(test(&format!("{path}/name"), &webhook["name"]));
    }
    let added = desired
        .iter()
        .filter(|desired| named(webhooks, desired).is_none())
        .map(|added| put("/webhooks/-", added.clone()));
    tests.extend(changes);
    tests.extend(added);
    // From the end, so that the remaining indices stay valid.
    tests.extend(removed.into_iter().rev());
    tests
}

/// Returns the operations that set the fields of `desired` in a webhook.
fn webhook_changes(
    path: &str,
    live: &Value,
    desired: &Value,
    ownership: &Ownership<'_>,
) -> Vec<PatchOperation> {
    let puts = desired
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(field, value)| live.get(field) != Some(value))
        .map(|(field, value)| put(&format!("{path}/{field}"), value.clone()));
    let dropped = live
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(field, _)| desired.get(field).is_none() && ownership.is_ours_alone(live, field))
        .map(|(field, _)| remove(&format!("{path}/{field}")));
    puts.chain(dropped).collect()
}

/// Returns the first webhook of the same name.
fn named<'a>(webhooks: &'a [Value], webhook: &Value) -> Option<&'a Value> {
    webhooks.iter().find(|other| other["name"] == webhook["name"])
}

impl<'a> Ownership<'a> {
    fn from_object(live: &'a Value) -> Self {
        let entries = object::items(live, "/metadata/managedFields").iter();
        let (ours, others) =
            entries.partition(|entry| object::text(entry, "/manager") == Some(names::INSTALL));
        Self { ours, others }
    }

    fn has_webhook(&self, webhook: &Value) -> bool {
        fields(&self.ours, webhook).next().is_some()
    }

    fn is_ours_alone(&self, webhook: &Value, field: &str) -> bool {
        let field = format!("f:{field}");
        let has = |entries| fields(entries, webhook).any(|fields| fields.get(&field).is_some());
        has(&self.ours) && !has(&self.others)
    }
}

/// Returns the sets of fields of a webhook (kubernetes-sigs/structured-merge-diff: `k:` and the key of an
/// item, `f:` and the name of a field).
fn fields<'a>(entries: &[&'a Value], webhook: &Value) -> impl Iterator<Item = &'a Value> {
    let item = format!("k:{}", json!({"name": webhook["name"]}));
    entries
        .iter()
        .filter_map(move |entry| entry["fieldsV1"]["f:webhooks"].get(&item))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADMIN: &str = "kubectl-edit";

    fn webhook(name: &str, service: &str, more: &Value) -> Value {
        let mut webhook = json!({
            "name": name,
            "clientConfig": {"service": {"name": service, "namespace": "n", "port": 443}, "caBundle": service},
            "rules": [{"resources": [service]}],
        });
        json_patch::merge(&mut webhook, more);
        webhook
    }

    /// A configuration, with the fields of its webhooks that managers own.
    fn live(webhooks: Vec<Value>, owners: &[(&str, &str, &[&str])]) -> Value {
        let entries: Vec<_> = owners
            .iter()
            .map(|(manager, name, fields)| {
                let owned: serde_json::Map<_, _> = fields
                    .iter()
                    .map(|field| (format!("f:{field}"), json!({})))
                    .collect();
                let item = format!("k:{{\"name\":\"{name}\"}}");
                json!({"manager": manager, "fieldsV1": {"f:webhooks": {item: owned}}})
            })
            .collect();
        json!({"metadata": {"managedFields": entries}, "webhooks": webhooks})
    }

    fn switched(live: &Value, desired: Vec<Value>) -> Value {
        let mut patched = live.clone();
        let armed = json!({ "webhooks": desired });
        let patch = json_patch::Patch(switch_webhooks(live, &armed));
        json_patch::patch(&mut patched, &patch).unwrap();
        patched["webhooks"].take()
    }

    const OURS: &[&str] = &["name", "clientConfig", "rules"];

    #[test]
    fn a_switched_webhook_keeps_fields_of_others() {
        let added = json!({
            "namespaceSelector": {"matchLabels": {"a": "b"}}, "objectSelector": {"matchLabels": {"c": "d"}},
            "matchConditions": [{"name": "m", "expression": "true"}], "timeoutSeconds": 10,
        });
        let before = live(
            vec![webhook("a", "old", &added)],
            &[
                (names::INSTALL, "a", OURS),
                (
                    ADMIN,
                    "a",
                    &["namespaceSelector", "objectSelector", "matchConditions"],
                ),
            ],
        );
        let desired = webhook("a", "new", &json!({"failurePolicy": "Ignore"}));
        let mut expected = desired.clone();
        json_patch::merge(&mut expected, &added);
        assert_eq!(switched(&before, vec![desired]), json!([expected]));
    }

    #[test]
    fn our_own_fields_follow_the_new_bundle() {
        let old = json!({
            "namespaceSelector": {"matchLabels": {"a": "b"}}, "objectSelector": {"matchLabels": {"c": "d"}},
            "timeoutSeconds": 3,
        });
        let before = live(
            vec![webhook("a", "old", &old)],
            &[
                (
                    names::INSTALL,
                    "a",
                    &["clientConfig", "rules", "namespaceSelector", "objectSelector"],
                ),
                (ADMIN, "a", &["objectSelector"]),
            ],
        );
        let after = switched(&before, vec![webhook("a", "new", &json!({}))]);
        let kept = json!({"objectSelector": old["objectSelector"], "timeoutSeconds": 3});
        assert_eq!(after, json!([webhook("a", "new", &kept)]));
    }

    #[test]
    fn webhooks_are_identified_by_name() {
        let plain = |name: &str, service: &str| webhook(name, service, &json!({}));
        let ours = |names: &[&'static str]| -> Vec<_> {
            names.iter().map(|name| (names::INSTALL, *name, OURS)).collect()
        };
        for (case, before, desired, expected) in [
            (
                "another order",
                live(vec![plain("a", "old"), plain("b", "old")], &ours(&["a", "b"])),
                vec![plain("b", "new"), plain("a", "other")],
                vec![plain("a", "other"), plain("b", "new")],
            ),
            (
                "renamed, with an additional webhook",
                live(
                    vec![plain("a", "old"), plain("b", "old"), plain("c", "old")],
                    &ours(&["a", "b", "c"]),
                ),
                vec![plain("b", "new"), plain("d", "new"), plain("e", "new")],
                vec![plain("b", "new"), plain("d", "new"), plain("e", "new")],
            ),
            (
                "a webhook of another manager next to ours",
                live(
                    vec![plain("theirs", "x"), plain("a", "old"), plain("b", "old")],
                    &[
                        (ADMIN, "theirs", OURS),
                        (names::INSTALL, "a", OURS),
                        (names::INSTALL, "b", OURS),
                    ],
                ),
                vec![plain("b", "new")],
                vec![plain("theirs", "x"), plain("b", "new")],
            ),
            (
                "a dropped webhook that another manager has changed, too",
                live(
                    vec![
                        webhook("a", "old", &json!({"timeoutSeconds": 1})),
                        plain("b", "old"),
                    ],
                    &[
                        (names::INSTALL, "a", OURS),
                        (ADMIN, "a", &["timeoutSeconds"]),
                        (names::INSTALL, "b", OURS),
                    ],
                ),
                vec![plain("b", "new")],
                vec![plain("b", "new")],
            ),
            (
                "a duplicate name",
                live(
                    vec![plain("a", "old"), plain("b", "old"), plain("a", "older")],
                    &ours(&["a", "b"]),
                ),
                vec![plain("a", "new"), plain("b", "new")],
                vec![plain("a", "new"), plain("b", "new")],
            ),
            (
                "none left",
                json!({"metadata": {}}),
                vec![plain("a", "new")],
                vec![plain("a", "new")],
            ),
        ] {
            assert_eq!(switched(&before, desired), Value::from(expected), "{case}");
        }
    }

    #[test]
    fn a_moved_index_fails_the_patch() {
        let before = live(
            vec![webhook("a", "old", &json!({})), webhook("b", "old", &json!({}))],
            &[(names::INSTALL, "a", OURS), (names::INSTALL, "b", OURS)],
        );
        for desired in ["a", "c"] {
            let armed = json!({"webhooks": [webhook(desired, "new", &json!({}))]});
            let patch = json_patch::Patch(switch_webhooks(&before, &armed));
            let mut moved = before.clone();
            moved["webhooks"].as_array_mut().unwrap().swap(0, 1);
            assert!(json_patch::patch(&mut moved, &patch).is_err(), "{desired}");
        }
    }
}
