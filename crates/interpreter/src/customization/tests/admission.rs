//! Validation of customizations.

use serde_json::{Value, json};

use super::{customization, interpretation, messages};
use crate::customization::admit;

fn health() -> Value {
    json!({"healthInterpretation": {"condition": {"type": "Ready"}}})
}

fn problems(new: &Value, others: &[Value]) -> Vec<String> {
    admit(new, None, others).map_or_else(messages, |()| Vec::new())
}

#[test]
fn all_problems_are_reported_with_their_fields() {
    for (new, expected) in [
        (
            json!(null),
            vec![
                "kind: must be ResourceInterpreterCustomization of config.karmada.io/v1alpha1 or ResourceInterpretation of interpretation.windlass.dev/v1alpha1",
                "metadata.name: must not be empty",
            ],
        ),
        (
            customization("a", "", "", json!({})),
            vec![
                "spec.target.apiVersion: must not be empty",
                "spec.target.kind: must not be empty",
            ],
        ),
        (
            customization("a", "v1", "Pod", json!(7)),
            vec!["spec.customizations: invalid type: integer `7`, expected struct CustomizationRules"],
        ),
        (
            customization("a", "v1", "Pod", json!({"retention": {"fields": ".a"}})),
            vec!["spec.customizations.retention.fields: invalid type: string \".a\", expected a sequence"],
        ),
        (
            interpretation("a", json!([]), "Replace", health()),
            vec!["spec.targets: must not be empty"],
        ),
        (
            interpretation(
                "a",
                json!([
                    {"apiVersion": "v1", "kinds": ["Pod", "Service"]},
                    {"apiVersion": "v1", "kind": "Service"},
                    {"apiVersion": "v1", "kind": "Service", "name": "a"},
                    {"apiVersion": "", "kind": "A"},
                ]),
                "Chain",
                json!({
                    "retention": {"fields": [".a", "[", "$"]},
                    "replicaResource": {"replicasPath": ".a"},
                    "statusReflection": {"fields": [".status"]},
                    "replicaRevision": {"replicasPath": ".a[*]"},
                    "healthInterpretation": {"all": [{"path": ".a"}]},
                }),
            ),
            vec![
                "spec.targets[1]: selects the same objects as targets[0]",
                "spec.targets[3].apiVersion: must not be empty; use * for any",
                "spec.customizations.replicaResource: must not be given with mode Chain",
                "spec.customizations.replicaRevision.replicasPath: must consist only of field names",
                "spec.customizations.retention.fields[1]: \"[\" is not a JSONPath: expected \"]\" at column 2",
                "spec.customizations.retention.fields[2]: \"$\" selects the whole object",
                "spec.customizations.statusReflection: must not be given with mode Chain",
                "spec.customizations.healthInterpretation.all[0].value: Equals needs a value or a valuePath",
            ],
        ),
    ] {
        assert_eq!(problems(&new, &[]), expected, "{new}");
    }
    assert_eq!(
        problems(&customization("a", "v1", "Pod", json!({})), &[]),
        [""; 0]
    );
    assert_eq!(
        problems(&customization("a", "v1", "Pod", json!({"retention": null})), &[]),
        [""; 0]
    );
}

#[test]
fn conflicting_customizations_are_rejected() {
    let deployments = json!([{"apiVersion": "apps/v1", "kinds": ["Deployment", "StatefulSet"]}]);
    let named = json!([{"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}]);
    let retention = json!({"retention": {"fields": [".a"]}});
    let dependencies = json!({"dependencyInterpretation": {"podTemplatePath": ".spec.template"}});
    let conflict = |other: &str| {
        vec![format!(
            "spec.customizations.healthInterpretation: conflicts with {other}, which customizes the same operation for the same target"
        )]
    };
    let of_karmada = |name: &str, rules: &Value| customization(name, "apps/v1", "Deployment", rules.clone());
    let new = of_karmada("new", &health());
    for (new, other, expected) in [
        (
            &new,
            of_karmada("b", &health()),
            conflict("ResourceInterpreterCustomization b"),
        ),
        (&new, of_karmada("new", &health()), vec![]),
        (&new, of_karmada("b", &retention), vec![]),
        (
            &new,
            customization("b", "apps/v1beta1", "Deployment", health()),
            vec![],
        ),
        (
            &new,
            interpretation("new", deployments.clone(), "Replace", health()),
            conflict("ResourceInterpretation new"),
        ),
        (
            &new,
            interpretation("b", deployments.clone(), "Chain", health()),
            vec![],
        ),
        (&new, interpretation("b", named, "Replace", health()), vec![]),
        (&new, json!({"kind": "Odd"}), vec![]),
        (
            &of_karmada("new", &dependencies),
            of_karmada("b", &dependencies),
            vec![],
        ),
        (
            &interpretation("new", deployments.clone(), "Replace", health()),
            new.clone(),
            conflict("ResourceInterpreterCustomization new"),
        ),
        (
            &interpretation("new", deployments, "Chain", health()),
            new.clone(),
            vec![],
        ),
    ] {
        assert_eq!(problems(new, std::slice::from_ref(&other)), expected, "{other}");
    }
}

#[test]
fn metadata_remains_writable() {
    let broken = customization("a", "", "", json!({}));
    assert!(admit(&broken, None, &[]).is_err());
    let mut written = broken.clone();
    written["metadata"]["finalizers"] = json!([]);
    assert_eq!(admit(&written, Some(&broken), &[]), Ok(()));
    written["spec"]["target"]["kind"] = json!("A");
    assert!(admit(&written, Some(&broken), &[]).is_err());
    written["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert_eq!(admit(&written, Some(&broken), &[]), Ok(()));
    assert!(admit(&json!({}), Some(&json!({})), &[]).is_err());
}
