//! The API reference, generated from the CustomResourceDefinitions.

use std::fmt::Write as _;

use serde_json::Value;
use windlass::commands::manifests;
use windlass_object::object;

/// Escapes a text for a table cell.
pub(crate) fn cell(text: &str) -> String {
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace('|', "\\|")
        .replace('<', "&lt;")
}

/// Returns the page: a section with a table of fields for each kind.
pub(crate) fn reference() -> String {
    let mut page =
        "# API\n\nThe fields of the kinds that Windlass defines, generated from their schemas.\n".to_owned();
    let objects = manifests::objects().unwrap().into_iter();
    let objects = objects
        .chain(manifests::policies_objects())
        .chain(manifests::customization_crds());
    let definitions: Vec<Value> = objects.filter(is_ours).collect();
    for (index, definition) in definitions.iter().enumerate() {
        for version in object::items(definition, "/spec/versions") {
            let twin = definitions[..index]
                .iter()
                .find(|other| has_fields_of(other, version));
            section(&mut page, definition, version, twin);
        }
    }
    page
}

fn is_ours(found: &Value) -> bool {
    let text = |pointer| object::text(found, pointer).unwrap_or_default();
    text("/kind") == "CustomResourceDefinition" && text("/spec/group") != "config.karmada.io"
}

/// Whether a kind has the same fields as `version` of another kind.
fn has_fields_of(definition: &Value, version: &Value) -> bool {
    const FIELDS: &str = "/schema/openAPIV3Schema/properties";
    object::items(definition, "/spec/versions")
        .iter()
        .any(|other| other.pointer(FIELDS) == version.pointer(FIELDS))
}

/// Adds the section of a kind. It refers to `twin`, the kind with the same fields, if there is one.
fn section(page: &mut String, definition: &Value, version: &Value, twin: Option<&Value>) {
    let text = |pointer| object::text(definition, pointer).unwrap();
    let schema = &version["schema"]["openAPIV3Schema"];
    let name = object::text(version, "/name").unwrap();
    write!(
        page,
        "\n## {}\n\n`{}/{name}`, {}. {}\n\n",
        text("/spec/names/kind"),
        text("/spec/group"),
        text("/spec/scope"),
        cell(object::text(schema, "/description").unwrap_or_default()),
    )
    .unwrap();
    if let Some(twin) = twin {
        let kind = object::text(twin, "/spec/names/kind").unwrap();
        let anchor = kind.to_lowercase();
        writeln!(page, "The fields are those of [{kind}](#{anchor}).").unwrap();
        return;
    }
    page.push_str("| field | type | description |\n|---|---|---|\n");
    for part in ["spec", "status"] {
        fields(page, part, &schema["properties"][part], false);
    }
}

/// Adds the rows of a field and of the fields below it.
fn fields(page: &mut String, path: &str, schema: &Value, is_required: bool) {
    if schema.is_null() {
        return;
    }
    let kind = object::text(schema, "/type").unwrap_or("any");
    let values = object::items(schema, "/enum")
        .iter()
        .filter_map(Value::as_str)
        .collect::<Vec<_>>();
    let mut says = cell(object::text(schema, "/description").unwrap_or_default());
    if !values.is_empty() {
        write!(says, " One of {}.", values.join(", ")).unwrap();
    }
    if let Some(default) = schema.get("default") {
        write!(says, " Default: `{default}`.").unwrap();
    }
    let required = if is_required { ", required" } else { "" };
    writeln!(page, "| `{path}` | {kind}{required} | {} |", says.trim()).unwrap();
    let (path, schema) = match (schema.get("items"), schema.get("additionalProperties")) {
        (Some(items), _) => (format!("{path}[]"), items),
        (None, Some(values)) if values.is_object() => (format!("{path}.*"), values),
        _ => (path.to_owned(), schema),
    };
    let required = object::items(schema, "/required");
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let is_required = required.iter().any(|required| required == name);
        fields(page, &format!("{path}.{name}"), field, is_required);
    }
}
