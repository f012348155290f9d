//! Schema defaults.

use serde_json::Value;

/// Fills in defaults; null in a field that is not nullable counts as absent.
pub(super) fn apply(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let properties = schema["properties"].as_object();
            for (name, property) in properties.into_iter().flatten() {
                if let Some(default) = property.get("default") {
                    let absent = match fields.get(name) {
                        None => true,
                        Some(Value::Null) => property["nullable"] != true,
                        Some(_) => false,
                    };
                    if absent {
                        fields.insert(name.clone(), default.clone());
                    }
                }
            }
            let additional = &schema["additionalProperties"];
            for (name, value) in fields {
                match schema["properties"].get(name) {
                    Some(property) => apply(property, value),
                    None if additional.is_object() => apply(additional, value),
                    None => {}
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| apply(&schema["items"], item)),
        _ => {}
    }
}
