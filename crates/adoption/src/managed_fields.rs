//! An object that is taken over is Windlass' as a whole: what it has beyond what is applied goes by the first apply, as if it had
//! been applied before. Fields of others would stay in it otherwise, a volume of the old certificate for one.

use serde_json::{Map, Value, json};
use windlass_object::{names, object};

/// Who writes into every object of its kind, whoever applies it.
const OF_KUBERNETES: &str = "kube-controller-manager";

/// The `metadata.managedFields` of a live object by which Windlass has applied what others have written; `None` where nobody else
/// has.
pub fn taken_over_fields(live: &Value) -> Option<Value> {
    let entries = object::items(live, "/metadata/managedFields");
    let (others, kept): (Vec<&Value>, Vec<_>) = entries.iter().partition(|entry| is_theirs(entry));
    if others.is_empty() {
        return None;
    }
    let mut fields = Map::new();
    for entry in others {
        if let Some(Value::Object(written)) = entry.get("fieldsV1") {
            unite(&mut fields, written);
        }
    }
    let ours = json!({
        "manager": names::INSTALL, "operation": "Apply", "apiVersion": live["apiVersion"],
        "fieldsType": "FieldsV1", "fieldsV1": fields,
    });
    Some(kept.into_iter().cloned().chain([ours]).collect())
}

fn is_theirs(entry: &Value) -> bool {
    let text = |pointer| object::text(entry, pointer).unwrap_or_default();
    let manager = text("/manager");
    text("/subresource").is_empty() && ![OF_KUBERNETES, names::INSTALL].contains(&manager)
}

fn unite(fields: &mut Map<String, Value>, others: &Map<String, Value>) {
    for (name, other) in others {
        match (fields.get_mut(name), other) {
            (Some(Value::Object(field)), Value::Object(other)) => unite(field, other),
            _ => _ = fields.insert(name.clone(), other.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_applied_counts_as_applied_by_us() {
        let entry = |manager: &str, subresource: &str, fields: &Value| json!({"manager": manager, "operation": "Update", "subresource": subresource, "fieldsV1": fields});
        let metrics = entry("autoscaler", "scale", &json!({"f:spec": {"f:replicas": {}}}));
        let revision = entry(OF_KUBERNETES, "", &json!({"f:metadata": {"f:annotations": {}}}));
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
