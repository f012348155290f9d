//! Managed fields of adopted objects. Windlass takes over all fields of an object, as if it had applied them,
//! so that its first apply removes those that the bundle lacks. Otherwise fields of other managers would
//! stay, for example a volume of the old certificate.

use serde_json::{Map, Value, json};
use windlass_object::{names, object};

/// Writes to all objects of some kinds, regardless of their manager.
const CONTROLLER_MANAGER: &str = "kube-controller-manager";

/// Returns the `metadata.managedFields` that assign the fields of other managers to Windlass; `None` if there
/// are no other managers.
pub fn taken_over_fields(live: &Value) -> Option<Value> {
    let entries = object::items(live, "/metadata/managedFields");
    let (others, kept): (Vec<&Value>, Vec<_>) = entries.iter().partition(|entry| is_other_manager(entry));
    if others.is_empty() {
        return None;
    }
    let mut fields = Map::new();
    for entry in others {
        if let Some(Value::Object(written)) = entry.get("fieldsV1") {
            merge(&mut fields, written);
        }
    }
    let ours = json!({
        "manager": names::INSTALL, "operation": "Apply", "apiVersion": live["apiVersion"],
        "fieldsType": "FieldsV1", "fieldsV1": fields,
    });
    Some(kept.into_iter().cloned().chain([ours]).collect())
}

fn is_other_manager(entry: &Value) -> bool {
    let text = |pointer| object::text(entry, pointer).unwrap_or_default();
    let manager = text("/manager");
    text("/subresource").is_empty() && ![CONTROLLER_MANAGER, names::INSTALL].contains(&manager)
}

fn merge(fields: &mut Map<String, Value>, others: &Map<String, Value>) {
    for (name, other) in others {
        match (fields.get_mut(name), other) {
            (Some(Value::Object(field)), Value::Object(other)) => merge(field, other),
            _ => _ = fields.insert(name.clone(), other.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_other_managers_are_assigned_to_windlass() {
        let entry = |manager: &str, subresource: &str, fields: &Value| json!({"manager": manager, "operation": "Update", "subresource": subresource, "fieldsV1": fields});
        let metrics = entry("autoscaler", "scale", &json!({"f:spec": {"f:replicas": {}}}));
        let revision = entry(
            CONTROLLER_MANAGER,
            "",
            &json!({"f:metadata": {"f:annotations": {}}}),
        );
        let live = json!({"apiVersion": "apps/v1", "metadata": {"managedFields": [
            entry("helm", "", &json!({"f:spec": {"f:template": {"f:a": {}}}, "f:metadata": {"f:labels": {}}})),
            metrics, revision,
            entry(names::COMMAND, "", &json!({"f:spec": {"f:template": {"f:b": {}}}})),
        ]}});
        let handed = taken_over_fields(&live).unwrap();
        assert_eq!(
            handed,
            json!([metrics, revision, {
                "manager": "windlass-install", "operation": "Apply", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
                "fieldsV1": {"f:spec": {"f:template": {"f:a": {}, "f:b": {}}}, "f:metadata": {"f:labels": {}}},
            }])
        );
        assert_eq!(
            taken_over_fields(&json!({"metadata": {"managedFields": handed}})),
            None
        );
    }
}
