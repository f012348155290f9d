//! Templates for tolerations.

use serde_json::{Value, json};

use super::{overridden, patches, pod, workloads};

fn template(operation: &str, tolerations: &Value) -> Value {
    json!({"type": "tolerations", "operation": operation, "tolerations": tolerations})
}

/// The tolerations of a pod after an override.
fn result_of(operation: &str, tolerations: &Value, before: &Value) -> Value {
    let pod = pod(&json!({"tolerations": before}));
    overridden(&template(operation, tolerations), &pod)["spec"]["tolerations"].clone()
}

#[test]
fn missing_tolerations_are_created() {
    let wanted = json!([{"key": "spot", "operator": "Exists"}]);
    for operation in ["add", "replace"] {
        for before in [json!(null), json!([])] {
            assert_eq!(result_of(operation, &wanted, &before), wanted);
        }
        let without = overridden(&template(operation, &wanted), &pod(&json!({})));
        assert_eq!(without["spec"]["tolerations"], wanted);
    }
}

#[test]
fn replace_replaces_tolerations_with_the_same_key_value_and_effect() {
    let wanted =
        json!([{"key": "spot", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}]);
    let before = json!([
        {"key": "spot", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
        {"key": "spot", "operator": "Exists", "effect": "NoSchedule"},
        {"operator": "Exists"},
    ]);
    assert_eq!(
        result_of("replace", &wanted, &before),
        json!([
            {"key": "spot", "operator": "Exists", "effect": "NoSchedule"},
            {"operator": "Exists"},
            {"key": "spot", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30},
        ])
    );
    let of_value = json!([{"key": "spot", "value": "a", "effect": "NoSchedule"}]);
    let others = json!([{"key": "spot", "value": "b", "effect": "NoSchedule"}, {"key": "gpu", "value": "a"}]);
    assert_eq!(
        result_of("replace", &of_value, &others),
        json!([
            {"key": "spot", "value": "b", "effect": "NoSchedule"},
            {"key": "gpu", "value": "a"},
            {"key": "spot", "value": "a", "effect": "NoSchedule"},
        ])
    );
}

#[test]
fn tolerations_of_every_workload_are_overridden() {
    let spec = json!({
        "containers": [{"name": "app"}],
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
    });
    for (object, place) in workloads(&spec) {
        let tolerations = |operation: &str, key: &str| {
            let wanted = json!([{"key": key, "operator": "Exists"}]);
            let after = overridden(&template(operation, &wanted), &object);
            after.pointer(&format!("{place}/tolerations")).unwrap().clone()
        };
        let both = json!([{"key": "gpu", "operator": "Exists"}, {"key": "spot", "operator": "Exists"}]);
        assert_eq!(tolerations("add", "spot"), both);
        assert_eq!(tolerations("replace", "spot"), both);
        assert_eq!(tolerations("remove", "gpu"), json!([]));
    }
}

#[test]
fn several_tolerations_are_added_at_once() {
    let wanted = json!([
        {"key": "spot", "operator": "Exists"},
        {"key": "gpu", "value": "x", "effect": "NoSchedule"},
        {"key": "spot", "operator": "Exists"},
    ]);
    assert_eq!(
        result_of("add", &wanted, &json!([{"operator": "Exists"}])),
        json!([
            {"operator": "Exists"},
            {"key": "spot", "operator": "Exists"},
            {"key": "gpu", "value": "x", "effect": "NoSchedule"},
        ])
    );
    // An update must not add the same tolerations again.
    let there =
        json!([{"key": "gpu", "value": "x", "effect": "NoSchedule"}, {"key": "spot", "operator": "Exists"}]);
    assert_eq!(result_of("add", &wanted, &there), there);
}

#[test]
fn removing_missing_tolerations_does_nothing() {
    let named = template("remove", &json!([{"key": "spot", "operator": "Exists"}]));
    for object in [
        pod(&json!({})),
        pod(&json!({"tolerations": null})),
        pod(&json!({"tolerations": []})),
        pod(&json!({"tolerations": [{"operator": "Exists"}]})),
    ] {
        assert_eq!(patches(&named, &json!({"object": object})), json!([]));
    }
}

#[test]
fn several_tolerations_are_removed_and_no_others() {
    let before = json!([
        {"key": "spot", "value": "a"},
        {"key": "gpu", "operator": "Exists"},
        {"key": "spot", "operator": "Exists"},
        {"operator": "Exists"},
        {"key": "a", "value": "b"},
    ]);
    assert_eq!(
        result_of("remove", &json!([{"key": "spot", "operator": "Exists"}]), &before),
        json!([{"key": "gpu", "operator": "Exists"}, {"operator": "Exists"}, {"key": "a", "value": "b"}])
    );
    assert_eq!(
        result_of(
            "remove",
            &json!([{"key": "a", "value": "b"}, {"key": "spot", "value": "a"}, {"key": "gpu", "value": "x"}]),
            &before
        ),
        json!([{"key": "gpu", "operator": "Exists"}, {"key": "spot", "operator": "Exists"}, {"operator": "Exists"}])
    );
    let of_all = json!([{"operator": "Exists"}]);
    assert_eq!(result_of("remove", &of_all, &before).as_array().unwrap().len(), 4);
}
