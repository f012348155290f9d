//! The CustomResourceDefinition of OperatorConditions, for clusters without OLM.

use serde_json::{Value, json};
use windlass_bundle::BundledKind;

use super::document::Document;

const COMMENT: &str =
    "Optional: operators report in OperatorConditions that they cannot be upgraded now. They are part of OLM;
apply this file only where OLM is not installed.";

pub(super) fn documents() -> Vec<Document> {
    vec![Document::commented(COMMENT, definition())]
}

pub(super) fn definition() -> Value {
    let kind = BundledKind::OPERATOR_CONDITION;
    let (group, version) = (kind.group(), kind.api_version.rsplit('/').next());
    let names = json!({"type": "array", "items": {"type": "string"}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{}.{group}", kind.plural)},
        "spec": {
            "group": group,
            "names": {
                "kind": kind.kind, "listKind": format!("{}List", kind.kind),
                "plural": kind.plural, "singular": kind.kind.to_lowercase(), "shortNames": ["condition"],
            },
            "scope": "Namespaced",
            "versions": [{
                "name": version, "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object", "required": ["metadata"],
                    "properties": {
                        "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"},
                        "spec": {"type": "object", "properties": {
                            "deployments": names, "serviceAccounts": names,
                            "overrides": conditions(), "conditions": conditions(),
                        }},
                        "status": {"type": "object", "properties": {"conditions": conditions()}},
                    },
                }},
            }],
        },
    })
}

/// Returns the schema of a list of `metav1.Condition`.
fn conditions() -> Value {
    let text = json!({"type": "string"});
    json!({"type": "array", "items": {
        "type": "object", "required": ["type", "status", "reason", "message"],
        "properties": {
            "type": text, "reason": text, "message": text,
            "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
            "lastTransitionTime": {"type": "string", "format": "date-time"},
            "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
        },
    }})
}
