//! The CustomResourceDefinitions.

use serde_json::{Value, json};
use structural_schema::Structural;

use super::{customization, interpretation};
use crate::customization::crds;

fn schema(crd: &Value) -> &Value {
    &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}

#[test]
fn the_crds_match_the_snapshot() {
    insta::assert_yaml_snapshot!(crds());
}

/// Checks that a schema is structural and has descriptions.
fn check(schema: &Value, path: &str) {
    let keywords: Vec<_> = schema.as_object().unwrap().keys().map(String::as_str).collect();
    for keyword in &keywords {
        let known = [
            "description",
            "type",
            "nullable",
            "properties",
            "required",
            "items",
            "additionalProperties",
            "enum",
            "minItems",
            "x-kubernetes-preserve-unknown-fields",
        ];
        assert!(known.contains(keyword), "{path}: {keyword}");
    }
    assert!(
        keywords.contains(&"type") || keywords.contains(&"x-kubernetes-preserve-unknown-fields"),
        "{path}"
    );
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        assert!(
            name == "metadata" || field["description"].is_string(),
            "{path} has no description"
        );
        check(field, &path);
    }
    for name in ["items", "additionalProperties"] {
        if let Some(items) = schema.get(name) {
            check(items, &format!("{path}[]"));
        }
    }
}

#[test]
fn the_schemas_are_structural_and_have_descriptions() {
    for crd in crds() {
        check(schema(&crd), crd["spec"]["names"]["kind"].as_str().unwrap());
    }
}

#[test]
fn the_schemas_keep_known_fields_and_reject_invalid_ones() {
    let [karmada, own] = crds().try_into().unwrap();
    let rules = json!({
        "retention": {"fields": [".a"], "luaScript": "a"},
        "replicaResource": {"replicasPath": ".a", "podTemplatePath": ".b"},
        "componentResource": {"luaScript": "a"},
        "replicaRevision": {"replicasPath": ".a"},
        "statusReflection": {"fields": [".status"]},
        "statusAggregation": {"luaScript": "a"},
        "healthInterpretation": {
            "condition": {"type": "Ready", "status": "True", "observedGeneration": true},
            "all": [
                {"path": ".a", "operator": "Equals", "value": {"any": ["thing"]}, "valuePath": ".b"},
                {"path": ".a", "operator": "In", "values": [1, "a", {"b": true}]},
            ],
            "any": [{"path": ".a", "operator": "Exists"}],
        },
        "dependencyInterpretation": {
            "references": [{"apiVersion": "v1", "kind": "A", "path": ".a", "namePath": ".b", "namespacePath": ".c", "scope": "Cluster"}],
            "podTemplatePath": ".a",
            "luaScript": "a",
        },
    });
    let selector = json!({"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]});
    let targets = json!([{"apiVersion": "*", "kind": "*", "labelSelector": selector, "name": "a", "namespace": "b"}, {"apiVersion": "v1", "kinds": ["A"]}]);
    for (crd, object) in [
        (&karmada, customization("a", "v1", "Pod", rules.clone())),
        (&own, interpretation("a", targets, "Chain", rules)),
    ] {
        let schema = Structural::new(schema(crd));
        let mut kept = object.clone();
        assert_eq!(schema.prune(&mut kept), [""; 0]);
        schema.default(&mut kept);
        assert_eq!(kept, object);
        assert_eq!(schema.validate(&object, None), []);
    }
    for (crd, wrong, expected) in [
        (
            &karmada,
            json!({"customizations": {}}),
            "spec.target: Required value",
        ),
        (
            &karmada,
            json!({"target": {"apiVersion": "v1"}, "customizations": {}}),
            "spec.target.kind: Required value",
        ),
        (
            &own,
            json!({"targets": [], "customizations": {}}),
            "spec.targets: Invalid value: 0: spec.targets in body should have at least 1 items",
        ),
        (
            &own,
            json!({"targets": [{"apiVersion": "v1"}], "mode": "Odd", "customizations": {}}),
            "spec.mode: Unsupported value: \"Odd\": supported values: \"Replace\", \"Chain\"",
        ),
    ] {
        let errors = Structural::new(schema(crd)).validate(&json!({"spec": wrong}), None);
        let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(errors, [expected]);
    }
}
