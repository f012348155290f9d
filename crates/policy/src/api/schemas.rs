//! Schemas of fields that have no type of their own here.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// A LabelSelector (`meta/v1`).
pub(super) fn label_selector(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "properties": {
            "matchLabels": {
                "description": "Labels that they have.",
                "type": "object",
                "additionalProperties": { "type": "string" },
            },
            "matchExpressions": {
                "description": "Expressions that hold for their labels.",
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": { "description": "The name of a label.", "type": "string" },
                        "operator": {
                            "description": "In, NotIn, Exists or DoesNotExist.",
                            "type": "string",
                            "enum": ["In", "NotIn", "Exists", "DoesNotExist"],
                        },
                        "values": {
                            "description": "Values of the label, for In and NotIn.",
                            "type": "array",
                            "items": { "type": "string" },
                        },
                    },
                },
            },
        },
    })
}

/// Rules in CEL, each with what is said where it does not hold.
pub(super) fn rules(rules: &[(&str, &str)]) -> Value {
    let rule = |(rule, message): &(&str, &str)| json!({"rule": rule, "message": message});
    rules.iter().map(rule).collect()
}

/// What holds for operations of a rule.
pub(super) fn target_operations() -> Value {
    rules(&[("self.size() == 1 || !('*' in self)", "* must be the only one")])
}

/// What holds for names of containers.
pub(super) fn containers() -> Value {
    rules(&[("self.size() == 1 || !('*' in self)", "* must be the only one")])
}

/// Any JSON.
pub(crate) fn any(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
}
