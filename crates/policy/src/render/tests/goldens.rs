//! Golden programs. Each is unchanged by `cue fmt` of v0.4.3.

use serde_json::{Value, json};

use super::{override_program, validation_program};

fn shown(template_type: &str, operation: &str, more: &Value) {
    let mut template = json!({"type": template_type, "operation": operation});
    for (name, value) in more.as_object().unwrap() {
        template[name] = value.clone();
    }
    insta::assert_snapshot!(
        format!("{template_type}_{operation}"),
        override_program(&template)
    );
}

#[test]
fn overrides_of_every_type_and_operation() {
    let node = json!({"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}]});
    let pods = json!([{"weight": 1, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "a"}}}}]);
    let affinity = json!({
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": node},
        "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": pods},
    });
    for operation in ["add", "replace", "remove"] {
        shown(
            "annotations",
            operation,
            &json!({"path": "/example.com~1owner", "value": {"string": "a \"b\""}}),
        );
        shown(
            "labels",
            operation,
            &json!({"value": {"stringMap": {"example.com/tier": "db", "team": "a"}}}),
        );
        let resources = json!({"limits": {"cpu": "500m", "nvidia.com/gpu": 1}, "requests": {"cpu": "100m"}});
        shown(
            "resources",
            operation,
            &json!({"resources": resources, "containers": ["app", "setup"]}),
        );
        let factors = json!({"cpuFactor": "0.5", "memoryFactor": "0.2", "diskFactor": "0.1"});
        shown(
            "resourcesOversell",
            operation,
            &json!({ "resourcesOversell": factors }),
        );
        let tolerations = json!([
            {"key": "spot", "operator": "Exists"},
            {"key": "gpu", "value": "a", "effect": "NoExecute", "tolerationSeconds": 30},
        ]);
        shown("tolerations", operation, &json!({ "tolerations": tolerations }));
        shown("affinity", operation, &json!({ "affinity": affinity }));
    }
}

#[test]
fn an_override_with_a_reference() {
    let reference = json!({"from": "owner", "path": "/metadata/labels/example.com~1team"});
    let template = json!({"type": "labels", "operation": "add", "path": "team", "valueRef": reference});
    insta::assert_snapshot!("labels_from_owner", override_program(&template));
}

#[test]
fn conditions_of_every_type() {
    let current = json!({"from": "current", "path": "/spec/replicas"});
    let reference = json!({"from": "http", "path": "body.data.limit", "http": {"url": "http://a.example", "method": "GET"}});
    for (name, more) in [
        ("exist", json!({"cond": "Exist"})),
        ("not_exist", json!({"cond": "NotExist", "affectMode": "allow"})),
        ("equal_text", json!({"cond": "Equal", "value": {"string": "a"}})),
        (
            "not_equal_number",
            json!({"cond": "NotEqual", "value": {"integer": 3}}),
        ),
        ("equal_reference", json!({"cond": "Equal", "valueRef": reference})),
        (
            "in_texts",
            json!({"cond": "In", "value": {"stringSlice": ["a", "b"]}, "affectMode": "allow"}),
        ),
        (
            "not_in_numbers",
            json!({"cond": "NotIn", "value": {"integerSlice": [1, 2]}}),
        ),
        ("in_reference", json!({"cond": "In", "valueRef": reference})),
        (
            "greater_than_text",
            json!({"cond": "Gt", "value": {"string": "a"}}),
        ),
        (
            "less_than_reference",
            json!({"cond": "Lte", "valueRef": reference}),
        ),
        (
            "greater_than_half",
            json!({"cond": "Gt", "valueRef": reference, "valueProcess": {"operation": "*", "operationWith": "50%"}}),
        ),
        (
            "less_than_processed",
            json!({"cond": "Lt", "value": {"integer": 3}, "valueProcess": {"operation": "-", "operationWith": -1}}),
        ),
        ("regex", json!({"cond": "Regex", "value": {"string": r"^a\.b$"}})),
    ] {
        let mut condition = json!({"dataRef": current, "message": "not \"so\""});
        for (name, value) in more.as_object().unwrap() {
            condition[name] = value.clone();
        }
        insta::assert_snapshot!(format!("condition_{name}"), validation_program(&condition));
    }
}
