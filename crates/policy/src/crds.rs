//! The CustomResourceDefinitions of the policies.

use serde_json::{Value, json};
use windlass_object::custom_resource::{ResourceScope, column, crd, schema};

use crate::api::{ClusterValidatePolicySpec, OverridePolicySpec, POLICY_API_VERSION, PolicyStatus};

/// The CustomResourceDefinitions of OverridePolicy, ClusterOverridePolicy and ClusterValidatePolicy.
pub fn crds() -> Vec<Value> {
    let spec = schema::<OverridePolicySpec>();
    vec![
        definition(
            "OverridePolicy",
            "op",
            ResourceScope::Namespaced,
            "OverridePolicy overrides objects of its namespace when they are written.",
            spec.clone(),
        ),
        definition(
            "ClusterOverridePolicy",
            "cop",
            ResourceScope::Cluster,
            "ClusterOverridePolicy overrides objects when they are written.",
            spec,
        ),
        definition(
            "ClusterValidatePolicy",
            "cvp",
            ResourceScope::Cluster,
            "ClusterValidatePolicy refuses invalid writes and deletions of objects.",
            schema::<ClusterValidatePolicySpec>(),
        ),
    ]
}

fn definition(kind: &str, short_name: &str, scope: ResourceScope, description: &str, spec: Value) -> Value {
    let singular = kind.to_lowercase();
    let plural = singular.strip_suffix('y').unwrap_or(&singular).to_owned() + "ies";
    crd(
        POLICY_API_VERSION,
        scope,
        &json!({
            "kind": kind,
            "listKind": format!("{kind}List"),
            "plural": plural,
            "singular": singular,
            "shortNames": [short_name],
        }),
        &[
            column("SELECTS", ".spec.resourceSelectors[*].kind"),
            column("FAILURE-POLICY", ".spec.failurePolicy"),
            column("READY", r#".status.conditions[?(@.type=="Ready")].status"#),
        ],
        description,
        vec![("spec", spec), ("status", schema::<PolicyStatus>())],
    )
}

#[cfg(test)]
mod tests {
    use structural_schema::Structural;

    use super::*;

    fn schema_of(kind: &str) -> Value {
        let crds = crds();
        let crd = crds.iter().find(|crd| crd["spec"]["names"]["kind"] == kind);
        crd.unwrap()["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone()
    }

    fn errors(kind: &str, spec: &Value) -> Vec<String> {
        let object =
            json!({"apiVersion": POLICY_API_VERSION, "kind": kind, "metadata": {"name": "a"}, "spec": spec});
        let errors = Structural::new(&schema_of(kind)).validate(&object, None);
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_kinds_have_the_names_of_kinitiras() {
        let told: Vec<_> = crds()
            .iter()
            .map(|crd| {
                let spec = &crd["spec"];
                let subresources = &spec["versions"][0]["subresources"];
                assert_eq!(subresources, &json!({"status": {}}));
                json!([
                    crd["metadata"]["name"],
                    spec["names"]["shortNames"],
                    spec["scope"],
                    spec["versions"][0]["name"]
                ])
            })
            .collect();
        assert_eq!(
            told,
            [
                json!([
                    "overridepolicies.policy.kcloudlabs.io",
                    ["op"],
                    "Namespaced",
                    "v1alpha1"
                ]),
                json!([
                    "clusteroverridepolicies.policy.kcloudlabs.io",
                    ["cop"],
                    "Cluster",
                    "v1alpha1"
                ]),
                json!([
                    "clustervalidatepolicies.policy.kcloudlabs.io",
                    ["cvp"],
                    "Cluster",
                    "v1alpha1"
                ]),
            ]
        );
    }

    /// Checks that a schema is structural and has descriptions.
    fn check(schema: &Value, path: &str) {
        let known = [
            "description",
            "type",
            "default",
            "nullable",
            "properties",
            "required",
            "items",
            "additionalProperties",
            "enum",
            "minItems",
            "maxItems",
            "minLength",
            "maxLength",
            "minimum",
            "x-kubernetes-preserve-unknown-fields",
            "x-kubernetes-int-or-string",
            "x-kubernetes-validations",
            "x-kubernetes-list-type",
            "x-kubernetes-list-map-keys",
        ];
        let fields = schema.as_object().unwrap();
        for keyword in fields.keys() {
            assert!(known.contains(&keyword.as_str()), "{path}: {keyword}");
        }
        let has_type = [
            "type",
            "x-kubernetes-preserve-unknown-fields",
            "x-kubernetes-int-or-string",
        ];
        assert!(has_type.iter().any(|name| fields.contains_key(*name)), "{path}");
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
            let kind = crd["spec"]["names"]["kind"].as_str().unwrap().to_owned();
            let schema = schema_of(&kind);
            check(&schema, &kind);
            assert_eq!(structural_schema::rule_problems(&schema, &kind), []);
        }
    }

    #[test]
    fn a_policy_without_a_status_is_not_observed() {
        for crd in crds() {
            let kind = crd["spec"]["names"]["kind"].as_str().unwrap().to_owned();
            let mut policy =
                json!({"apiVersion": POLICY_API_VERSION, "kind": kind, "metadata": {"name": "a"}});
            Structural::new(&schema_of(&kind)).default(&mut policy);
            assert_eq!(policy["status"], json!({"observedGeneration": -1}), "{kind}");
        }
    }

    fn override_errors(overriders: Value) -> Vec<String> {
        errors(
            "OverridePolicy",
            &json!({"overrideRules": [{"overriders": overriders}]}),
        )
    }

    fn condition_errors(condition: Value) -> Vec<String> {
        let template = json!({"type": "condition", "condition": condition});
        errors(
            "ClusterValidatePolicy",
            &json!({"validateRules": [{"template": template}]}),
        )
    }

    #[test]
    fn documented_required_fields_are_required() {
        assert_eq!(
            errors("OverridePolicy", &json!({})),
            ["spec.overrideRules: Required value"]
        );
        assert_eq!(
            errors("ClusterValidatePolicy", &json!({})),
            ["spec.validateRules: Required value"]
        );
        let rule = "spec.overrideRules[0].overriders";
        assert_eq!(
            override_errors(json!({"template": {}, "plaintext": [{}], "origin": [{}]})),
            [
                format!("{rule}.template.type: Required value"),
                format!("{rule}.template.operation: Required value"),
                format!("{rule}.plaintext[0].path: Required value"),
                format!("{rule}.plaintext[0].op: Required value"),
                format!("{rule}.origin[0].type: Required value"),
                format!("{rule}.origin[0].operation: Required value"),
            ]
        );
        let condition = "spec.validateRules[0].template.condition";
        assert_eq!(
            condition_errors(json!({})),
            [
                format!("{condition}.cond: Required value"),
                format!("{condition}.dataRef: Required value"),
                format!("{condition}.message: Required value"),
            ]
        );
    }

    #[test]
    fn a_request_needs_no_body() {
        let http = json!({"url": "https://a", "method": "GET"});
        let reference = json!({"from": "http", "path": "body.a", "http": http});
        let template = json!({"type": "labels", "operation": "add", "path": "a", "valueRef": reference});
        assert_eq!(override_errors(json!({ "template": template })), [""; 0]);
    }

    #[test]
    fn dependent_fields_are_required_together() {
        let invalid =
            |path: &str, message: &str| vec![format!("{path}: Invalid value: \"object\": {message}")];
        let rule = "spec.overrideRules[0].overriders";
        assert_eq!(
            override_errors(json!({})),
            invalid(
                rule,
                "must have at least one of plaintext, cue, cel, template and origin"
            )
        );
        let template = format!("{rule}.template");
        for (fields, message) in [
            (
                json!({"type": "resources", "operation": "add"}),
                "type: resources requires the field resources",
            ),
            (
                json!({"type": "affinity", "operation": "add"}),
                "type: affinity requires the field affinity",
            ),
            (
                json!({"type": "tolerations", "operation": "remove"}),
                "type: tolerations requires the field tolerations",
            ),
            (
                json!({"type": "labels", "operation": "add", "path": "a"}),
                "type: annotations and labels need value or valueRef",
            ),
            (
                json!({"type": "labels", "operation": "remove"}),
                "type: annotations and labels need path, or value.stringMap",
            ),
        ] {
            assert_eq!(
                override_errors(json!({"template": fields})),
                invalid(&template, message)
            );
        }
        let removes = json!({"type": "labels", "operation": "remove", "path": "a"});
        assert_eq!(override_errors(json!({"template": removes})), [""; 0]);
        let condition = "spec.validateRules[0].template.condition";
        let current = json!({"from": "current", "path": "/a"});
        for (data, message) in [
            (
                json!({"from": "k8s", "path": "/a"}),
                "from: k8s requires the field k8s",
            ),
            (
                json!({"from": "http", "path": "a"}),
                "from: http requires the field http",
            ),
            (
                json!({"from": "current"}),
                "path is missing; only from: owner needs none",
            ),
        ] {
            assert_eq!(
                condition_errors(json!({"cond": "Exist", "dataRef": data, "message": "no"})),
                invalid(&format!("{condition}.dataRef"), message)
            );
        }
        assert_eq!(
            condition_errors(json!({"cond": "Exist", "dataRef": {"from": "owner"}, "message": "no"})),
            [""; 0]
        );
        assert_eq!(
            condition_errors(json!({"cond": "Gt", "dataRef": current, "message": "no"})),
            invalid(
                condition,
                "needs value or valueRef; only cond: Exist and NotExist need none"
            )
        );
        assert_eq!(
            condition_errors(
                json!({"cond": "In", "dataRef": current, "value": {"string": "a"}, "message": "no"})
            ),
            invalid(condition, "cond: In and NotIn need a value that is a list")
        );
    }

    #[test]
    fn the_wildcard_must_be_the_only_operation() {
        let overriders = json!({"cue": "patches: []"});
        let rules = json!([{"targetOperations": ["CREATE", "*"], "overriders": overriders}]);
        assert_eq!(
            errors("OverridePolicy", &json!({"overrideRules": rules})),
            ["spec.overrideRules[0].targetOperations: Invalid value: \"array\": * must be the only one"]
        );
        let rules = json!([{"targetOperations": ["*"], "overriders": overriders}]);
        assert_eq!(
            errors("OverridePolicy", &json!({"overrideRules": rules})),
            [""; 0]
        );
        let rules = json!([{"targetOperations": ["PATCH"], "overriders": overriders}]);
        assert_eq!(
            errors("OverridePolicy", &json!({"overrideRules": rules})).len(),
            1
        );
    }
}
