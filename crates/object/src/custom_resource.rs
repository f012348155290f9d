//! CustomResourceDefinitions of Rust types.

use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings, json_schema};
use serde_json::{Map, Value, json};

use crate::object;

/// The scope of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResourceScope {
    /// Objects have a namespace.
    Namespaced,
    /// Objects are cluster-scoped.
    Cluster,
}

/// Returns a printer column of `kubectl get`.
pub fn column(name: &str, path: &str) -> Value {
    json!({"name": name, "type": "string", "jsonPath": path})
}

/// Returns a CustomResourceDefinition whose objects have these fields besides their metadata. The first field
/// is required, and a `status` is a subresource.
pub fn crd(
    api_version: &str,
    scope: ResourceScope,
    names: &Value,
    columns: &[Value],
    description: &str,
    fields: Vec<(&str, Value)>,
) -> Value {
    let (group, version) = object::group_and_version(api_version);
    let plural = names["plural"].as_str().unwrap_or_default();
    let age = json!({"name": "AGE", "type": "date", "jsonPath": ".metadata.creationTimestamp"});
    let columns: Vec<_> = columns.iter().chain([&age]).collect();
    let required: Vec<_> = fields.iter().take(1).map(|(name, _)| *name).collect();
    let has_status = fields.iter().any(|(name, _)| *name == "status");
    let mut schema = json!({
        "description": description,
        "type": "object",
        "required": required,
        "properties": {
            "apiVersion": { "description": "The group and version of this object.", "type": "string" },
            "kind": { "description": "The kind of this object.", "type": "string" },
            "metadata": { "type": "object" },
        },
    });
    for (name, field) in fields {
        schema["properties"][name] = field;
    }
    let mut version = json!({
        "name": version,
        "served": true,
        "storage": true,
        "additionalPrinterColumns": columns,
        "schema": { "openAPIV3Schema": schema },
    });
    if has_status {
        version["subresources"] = json!({ "status": {} });
        // GitOps tools take an object without a status to be ready.
        version["schema"]["openAPIV3Schema"]["properties"]["status"]["default"] =
            json!({ "observedGeneration": -1 });
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{group}") },
        "spec": {
            "group": group,
            "names": names,
            "scope": match scope {
                ResourceScope::Namespaced => "Namespaced",
                ResourceScope::Cluster => "Cluster",
            },
            "versions": [version],
        },
    })
}

/// Returns the schema of a field that holds a LabelSelector (`meta/v1`), for `schema_with` of schemars.
pub fn label_selector(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "nullable": true,
        "properties": {
            "matchLabels": {
                "description": "Labels that objects must have.",
                "type": "object",
                "additionalProperties": { "type": "string" },
            },
            "matchExpressions": {
                "description": "Label requirements, all of which must match.",
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": { "description": "The label key.", "type": "string" },
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

/// Returns the structural schema of a type.
pub fn schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::openapi3().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    make_structural(&mut schema);
    schema
}

/// Removes or rewrites what a structural schema may not contain: titles, choices of constants, and defaults,
/// which the API server would write into every object. Also removes the line breaks of doc comments.
fn make_structural(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else {
        return;
    };
    for name in ["title", "default", "format"] {
        fields.shift_remove(name);
    }
    if let Some(Value::String(description)) = fields.get_mut("description") {
        *description = description.replace('\n', " ");
    }
    for name in ["oneOf", "anyOf", "allOf"] {
        if let Some(Value::Array(choices)) = fields.shift_remove(name) {
            merge(fields, choices);
        }
    }
    for name in ["items", "additionalProperties"] {
        fields.get_mut(name).into_iter().for_each(make_structural);
    }
    let properties = fields.get_mut("properties").and_then(Value::as_object_mut);
    properties
        .into_iter()
        .flat_map(Map::values_mut)
        .for_each(make_structural);
}

/// Merges `oneOf` alternatives into the schema: constants as an `enum`, otherwise the alternative that is not
/// null.
fn merge(fields: &mut Map<String, Value>, choices: Vec<Value>) {
    let mut constants = Vec::new();
    for mut choice in choices {
        make_structural(&mut choice);
        let Value::Object(choice) = choice else { continue };
        let of_choice = choice.get("enum").and_then(Value::as_array);
        if of_choice.is_some_and(|values| values.iter().all(Value::is_null)) {
            fields.insert("nullable".into(), true.into());
        } else if let Some(values) = of_choice {
            constants.extend(values.iter().cloned());
        } else if let Some(constant) = choice.get("const") {
            constants.push(constant.clone());
        } else {
            for (name, value) in choice {
                fields.entry(name).or_insert(value);
            }
        }
    }
    if !constants.is_empty() {
        fields.insert("type".into(), "string".into());
        fields.insert("enum".into(), constants.into());
    }
}
