//! What the index keeps of an object: not what nobody reads and what is large.

use kube::api::DynamicObject;
use serde_json::{Value, json};
use windlass_trust::injection::owns_ca_bundle;

use crate::{
    apply::replicas::{is_scaled, slimmed_fields},
    kind::{Kind, kinds},
};

/// The kinds of which a part is not kept that is applied.
const SLIMMED: [Kind; 2] = [kinds::CUSTOM_RESOURCE_DEFINITION, kinds::CONFIG_MAP];

/// Whether objects of a kind are kept without a part that is applied.
pub(crate) fn is_slimmed(kind: &Kind) -> bool {
    SLIMMED.contains(kind)
}

/// The object as JSON, without what nobody reads and what is large: the field sets of managers, the schemas of
/// CustomResourceDefinitions, the content of ConfigMaps. Whoever needs these asks the API server.
pub(crate) fn slim(object: DynamicObject, kind: &Kind) -> Option<Value> {
    let mut object = serde_json::to_value(object).ok()?;
    object["apiVersion"] = Value::from(kind.api_version.as_ref());
    object["kind"] = Value::from(kind.kind.as_ref());
    if let Some(Value::Array(entries)) = object.pointer_mut("/metadata/managedFields") {
        // The entries themselves stay, and so their places: patches name them by index. Of what they own only the CA
        // bundles matter, and the replicas of Deployments.
        for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
            let fields = entry.remove("fieldsV1").unwrap_or_default();
            if owns_ca_bundle(&fields) {
                entry.insert("fieldsV1".to_owned(), json!({"f:caBundle": {}}));
            } else if is_scaled(kind)
                && let Some(kept) = slimmed_fields(&fields)
            {
                entry.insert("fieldsV1".to_owned(), kept);
            }
        }
    }
    if *kind == kinds::CONFIG_MAP
        && let Some(fields) = object.as_object_mut()
    {
        fields.remove("data");
        fields.remove("binaryData");
    }
    if *kind == kinds::CUSTOM_RESOURCE_DEFINITION
        && let Some(Value::Array(versions)) = object.pointer_mut("/spec/versions")
    {
        for version in versions.iter_mut().filter_map(Value::as_object_mut) {
            version.remove("schema");
        }
    }
    Some(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_is_kept_without_its_schemas_and_field_sets() {
        let object: DynamicObject = serde_json::from_value(json!({
            "metadata": {
                "name": "widgets.example.com",
                "managedFields": [
                    {"manager": "m", "operation": "Apply", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {}}},
                    {"manager": "n", "operation": "Update", "fieldsV1": {"f:spec": {"f:caBundle": {}, "f:group": {}}}},
                ]
            },
            "spec": {"versions": [{"name": "v1", "served": true, "schema": {"openAPIV3Schema": {}}}]}
        }))
        .unwrap();
        let slim = slim(object, &kinds::CUSTOM_RESOURCE_DEFINITION).unwrap();
        assert_eq!(slim["spec"]["versions"], json!([{"name": "v1", "served": true}]));
        assert_eq!(slim["metadata"]["managedFields"][0]["manager"], "m");
        assert!(slim["metadata"]["managedFields"][0].get("fieldsV1").is_none());
        let owner = &slim["metadata"]["managedFields"][1];
        assert_eq!(owner["fieldsV1"], json!({"f:caBundle": {}}));
        assert_eq!(slim["kind"], "CustomResourceDefinition");
        assert!(is_slimmed(&kinds::CUSTOM_RESOURCE_DEFINITION));
    }

    #[test]
    fn who_scales_a_deployment_is_kept() {
        let object: DynamicObject = serde_json::from_value(json!({"metadata": {"name": "a", "managedFields": [
            {"manager": "kubectl", "operation": "Update", "subresource": "scale", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
            {"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {"f:paused": {}}}},
        ]}}))
        .unwrap();
        let fields = |kind: &Kind| {
            let slim = slim(object.clone(), kind).unwrap();
            [0, 1].map(|entry| slim["metadata"]["managedFields"][entry]["fieldsV1"].clone())
        };
        let kept = json!({"f:spec": {"f:replicas": {}}});
        assert_eq!(fields(&kinds::DEPLOYMENT), [kept, Value::Null]);
        assert_eq!(fields(&kinds::SERVICE), [Value::Null, Value::Null]);
    }

    #[test]
    fn the_content_of_a_config_map_is_not_kept_and_that_of_a_secret_is() {
        let object: DynamicObject = serde_json::from_value(json!({
            "metadata": {"name": "bundle-0", "namespace": "windlass-system"},
            "immutable": true, "data": {"a": "b"}, "binaryData": {"part": "H4sI"},
        }))
        .unwrap();
        let config_map = slim(object.clone(), &kinds::CONFIG_MAP).unwrap();
        assert_eq!(config_map.get("data").or(config_map.get("binaryData")), None);
        assert_eq!(config_map["immutable"], true);
        let secret = slim(object, &kinds::SECRET).unwrap();
        assert_eq!(secret["data"], json!({"a": "b"}));
        assert!(is_slimmed(&kinds::CONFIG_MAP) && !is_slimmed(&kinds::SECRET));
    }
}
