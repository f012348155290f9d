//! Pruning of unknown fields (KEP-1111).

use serde_json::Value;

/// Metadata fields are known to every schema.
const ROOT_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Prunes a whole object.
pub(super) fn prune(schema: &Value, object: &mut Value) -> Vec<String> {
    let mut unknown = Vec::new();
    walk(schema, object, true, "", &mut unknown);
    unknown
}

fn walk(schema: &Value, value: &mut Value, root: bool, path: &str, unknown: &mut Vec<String>) {
    let preserve = schema["x-kubernetes-preserve-unknown-fields"] == true;
    match value {
        Value::Object(fields) => {
            let embedded = root || schema["x-kubernetes-embedded-resource"] == true;
            let additional = &schema["additionalProperties"];
            fields.retain(|name, value| {
                let below = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}.{name}")
                };
                if embedded && ROOT_FIELDS.contains(&name.as_str()) {
                    return true;
                }
                if let Some(property) = schema["properties"].get(name) {
                    walk(property, value, false, &below, unknown);
                    return true;
                }
                if additional.is_object() {
                    walk(additional, value, false, &below, unknown);
                    return true;
                }
                let keep = preserve || *additional == Value::Bool(true);
                if !keep {
                    unknown.push(below);
                }
                keep
            });
        }
        // The items of a list without an item schema are unknown.
        Value::Array(_) if preserve && !schema["items"].is_object() => {}
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                walk(
                    &schema["items"],
                    item,
                    false,
                    &format!("{path}[{index}]"),
                    unknown,
                );
            }
        }
        _ => {}
    }
}
