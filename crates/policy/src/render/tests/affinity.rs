//! Templates for affinity.

use serde_json::{Value, json};

use super::{overridden, pod, workloads};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Every list of terms in an affinity, with two terms each.
fn lists() -> [(&'static str, &'static str, Value, Value); 6] {
    let node = |key: &str| json!({"matchExpressions": [{"key": key, "operator": "Exists"}]});
    let preferred_node = |key: &str| json!({"weight": 1, "preference": node(key)});
    let pods = |key: &str| json!({"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": key});
    let preferred_pods = |key: &str| json!({"weight": 1, "podAffinityTerm": pods(key)});
    [
        ("nodeAffinity", REQUIRED, node("a"), node("b")),
        (
            "nodeAffinity",
            PREFERRED,
            preferred_node("a"),
            preferred_node("b"),
        ),
        ("podAffinity", REQUIRED, pods("a"), pods("b")),
        ("podAffinity", PREFERRED, preferred_pods("a"), preferred_pods("b")),
        ("podAntiAffinity", REQUIRED, pods("a"), pods("b")),
        (
            "podAntiAffinity",
            PREFERRED,
            preferred_pods("a"),
            preferred_pods("b"),
        ),
    ]
}

/// An affinity with these terms in one list.
fn affinity(sort: &str, level: &str, terms: &[&Value]) -> Value {
    if sort == "nodeAffinity" && level == REQUIRED {
        return json!({ sort: { level: { "nodeSelectorTerms": terms } } });
    }
    json!({ sort: { level: terms } })
}

fn template(operation: &str, affinity: &Value) -> Value {
    json!({"type": "affinity", "operation": operation, "affinity": affinity})
}

/// The affinity of a pod after an override.
fn result_of(operation: &str, wanted: &Value, before: &Value) -> Value {
    overridden(&template(operation, wanted), &pod(&json!({"affinity": before})))["spec"]["affinity"].clone()
}

#[test]
fn missing_affinity_is_created() {
    for (sort, level, a, _) in lists() {
        let wanted = affinity(sort, level, &[&a]);
        for operation in ["add", "replace"] {
            for before in [
                json!(null),
                json!({}),
                json!({ sort: null }),
                json!({ sort: {} }),
                json!({ sort: { level: null } }),
            ] {
                assert_eq!(result_of(operation, &wanted, &before), wanted, "{before}");
            }
            let without = overridden(&template(operation, &wanted), &pod(&json!({})));
            assert_eq!(without["spec"]["affinity"], wanted);
        }
    }
}

#[test]
fn affinity_of_every_workload_is_overridden() {
    let (sort, level, a, _) = lists()[5].clone();
    let wanted = affinity(sort, level, &[&a]);
    for (object, place) in workloads(&json!({"containers": [{"name": "app"}]})) {
        let after = overridden(&template("add", &wanted), &object);
        assert_eq!(after.pointer(&format!("{place}/affinity")), Some(&wanted));
        let removed = overridden(&template("remove", &wanted), &after);
        assert_eq!(
            removed.pointer(&format!("{place}/affinity")),
            Some(&json!({ sort: {} }))
        );
    }
}

#[test]
fn required_and_preferred_are_replaced_and_removed_together() {
    let [(_, _, required, other), (_, _, preferred, another), ..] = lists();
    let both = |required: &Value, preferred: &Value| json!({"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [required]}, PREFERRED: [preferred]}});
    let wanted = both(&required, &preferred);
    let mut before = both(&other, &another);
    before["podAffinity"] = json!({});
    let mut after = wanted.clone();
    after["podAffinity"] = json!({});
    assert_eq!(result_of("replace", &wanted, &before), after);
    assert_eq!(
        result_of("remove", &wanted, &before),
        json!({"nodeAffinity": {}, "podAffinity": {}})
    );
}

#[test]
fn several_terms_are_added_to_each_list() {
    for (sort, level, a, b) in lists() {
        let wanted = affinity(sort, level, &[&a, &b, &a]);
        let mut old = a.clone();
        old["matchFields"] = json!([]);
        assert_eq!(
            result_of("add", &wanted, &affinity(sort, level, &[&old])),
            affinity(sort, level, &[&old, &a, &b]),
            "{sort} {level}"
        );
        // An update must not add the same terms again.
        let there = affinity(sort, level, &[&b, &old, &a]);
        assert_eq!(result_of("add", &wanted, &there), there);
    }
}

#[test]
fn replace_and_remove_change_only_the_given_list() {
    for (sort, level, a, b) in lists() {
        let other = if level == REQUIRED { PREFERRED } else { REQUIRED };
        let mut before = affinity(sort, level, &[&a]);
        before[sort][other] = json!(["stays"]);
        let mut replaced = affinity(sort, level, &[&b]);
        replaced[sort][other] = json!(["stays"]);
        let wanted = affinity(sort, level, &[&b]);
        assert_eq!(result_of("replace", &wanted, &before), replaced);
        assert_eq!(
            result_of("remove", &wanted, &before),
            json!({ sort: { other: ["stays"] } })
        );
        for nothing in [json!(null), json!({}), json!({ sort: null })] {
            assert_eq!(result_of("remove", &wanted, &nothing), nothing);
        }
    }
}
