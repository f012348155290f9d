//! The CustomResourceDefinitions of both kinds.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use super::{
    INTERPRETATION_API_VERSION, KARMADA_API_VERSION, ResourceInterpretationSpec,
    ResourceInterpreterCustomizationSpec,
};

/// The CustomResourceDefinitions of ResourceInterpreterCustomization, where Karmada's own is not there, and of ResourceInterpretation.
pub fn crds() -> Vec<Value> {
    let column = |name: &str, path: &str| json!({"name": name, "type": "string", "jsonPath": path});
    vec![
        crd(
            KARMADA_API_VERSION,
            &json!({
                "kind": "ResourceInterpreterCustomization",
                "listKind": "ResourceInterpreterCustomizationList",
                "plural": "resourceinterpretercustomizations",
                "singular": "resourceinterpretercustomization",
                "shortNames": ["ric"],
                "categories": ["karmada-io"],
            }),
            &[
                column("TARGET-API-VERSION", ".spec.target.apiVersion"),
                column("TARGET-KIND", ".spec.target.kind"),
            ],
            "ResourceInterpreterCustomization says how objects of one kind are interpreted.",
            ("spec", schema::<ResourceInterpreterCustomizationSpec>()),
        ),
        crd(
            INTERPRETATION_API_VERSION,
            &json!({
                "kind": "ResourceInterpretation",
                "listKind": "ResourceInterpretationList",
                "plural": "resourceinterpretations",
                "singular": "resourceinterpretation",
            }),
            &[
                column("Target", ".spec.targets[*].kind"),
                column("Mode", ".spec.mode"),
            ],
            "ResourceInterpretation says how objects of several kinds, or single ones, are interpreted.",
            ("spec", schema::<ResourceInterpretationSpec>()),
        ),
    ]
}

/// A CustomResourceDefinition of objects of the whole cluster, which have one field beside their metadata.
pub(crate) fn crd(
    api_version: &str,
    names: &Value,
    columns: &[Value],
    description: &str,
    (field, schema): (&str, Value),
) -> Value {
    let (group, version) = windlass_object::object::group_and_version(api_version);
    let plural = names["plural"].as_str().unwrap_or_default();
    let age = json!({"name": "AGE", "type": "date", "jsonPath": ".metadata.creationTimestamp"});
    let columns: Vec<_> = columns.iter().chain([&age]).collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{group}") },
        "spec": {
            "group": group,
            "names": names,
            "scope": "Cluster",
            "versions": [{
                "name": version,
                "served": true,
                "storage": true,
                "additionalPrinterColumns": columns,
                "schema": { "openAPIV3Schema": {
                    "description": description,
                    "type": "object",
                    "required": [field],
                    "properties": {
                        "apiVersion": {
                            "description": "The group and version of this object.",
                            "type": "string",
                        },
                        "kind": { "description": "The kind of this object.", "type": "string" },
                        "metadata": { "type": "object" },
                        field: schema,
                    },
                } },
            }],
        },
    })
}

/// The structural schema of a type.
pub(crate) fn schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::openapi3().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    make_structural(&mut schema);
    schema
}

/// Takes out and turns what a structural schema may not have: titles, defaults, which would be written into every object, and choices of
/// constants. The line ends of doc comments go, too.
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

/// Puts choices into the schema that has them: constants as an enumeration, else the one that is not null.
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
