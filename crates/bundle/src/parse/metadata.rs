//! The files in `metadata/`: the package of the bundle, and properties for its ClusterServiceVersion.

use serde_json::{Map, Value, json};
use windlass_object::{JsonPath, Problem, object, yaml};

use super::{
    model::{Files, Manifest},
    rule,
};

const ANNOTATIONS: &str = "metadata/annotations.yaml";
const PROPERTIES: &str = "metadata/properties.yaml";
const DEPENDENCIES: &str = "metadata/dependencies.yaml";
const PACKAGE: &str = "operators.operatorframework.io.bundle.package.v1";
const CHANNELS: &str = "operators.operatorframework.io.bundle.channels.v1";

/// The annotation that contains the properties of a ClusterServiceVersion, as a JSON list.
const OLM_PROPERTIES: &str = "olm.properties";

/// The contents of `metadata/annotations.yaml`; absent entries are empty.
#[derive(Debug, Default)]
pub(super) struct Annotations {
    pub(super) package: String,
    pub(super) channels: Vec<String>,
}

/// Finds the file with the annotations: `annotations.yaml`, else the first in `metadata/` that has any, like
/// `opm` (`operator-registry`, `pkg/lib/bundle/validate.go`).
fn annotations_file(files: &Files) -> Option<&str> {
    let in_folder = files
        .keys()
        .map(String::as_str)
        .filter(|name| name.starts_with("metadata/"));
    let has_annotations = |name: &&str| {
        single_mapping(files, name, &mut Vec::new())
            .is_some_and(|file| file.object.get("annotations").is_some_and(Value::is_object))
    };
    [ANNOTATIONS, "metadata/annotations.yml"]
        .into_iter()
        .find(|name| files.contains_key(*name))
        .or_else(|| in_folder.clone().find(has_annotations))
}

/// Parses `metadata/annotations.yaml`.
pub(super) fn annotations(files: &Files, problems: &mut Vec<Problem>) -> Annotations {
    let Some(name) = annotations_file(files) else {
        let message = "the bundle has no file \"metadata/annotations.yaml\"";
        problems.push(Problem::in_bundle(
            ANNOTATIONS,
            rule::ANNOTATIONS_MISSING,
            message,
        ));
        return Annotations::default();
    };
    let Some(file) = single_mapping(files, name, problems) else {
        return Annotations::default();
    };
    let path = JsonPath::from_fields("annotations");
    let annotations = match file.object.get("annotations") {
        None | Some(Value::Null) => return Annotations::default(),
        Some(Value::Object(annotations)) => annotations,
        Some(_) => {
            problems.push(file.problem(&path, rule::FIELD_TYPE, "must be a mapping"));
            return Annotations::default();
        }
    };
    let mut text = |name: &str| match annotations.get(name) {
        None | Some(Value::Null) => "",
        Some(Value::String(value)) => value,
        Some(_) => {
            problems.push(file.problem(&path.field(name), rule::FIELD_TYPE, "must be a string"));
            ""
        }
    };
    Annotations {
        package: text(PACKAGE).to_owned(),
        channels: text(CHANNELS)
            .split(',')
            .map(str::trim)
            .filter(|channel| !channel.is_empty())
            .map(str::to_owned)
            .collect(),
    }
}

/// Reads `metadata/properties.yaml`, which may be absent: a list of `{type, value}`.
pub(super) fn properties(files: &Files, problems: &mut Vec<Problem>) -> Vec<Value> {
    let Some(mut file) = single_mapping(files, PROPERTIES, problems) else {
        return Vec::new();
    };
    let path = JsonPath::from_fields("properties");
    let properties = match file.object.get_mut("properties").map(Value::take) {
        None | Some(Value::Null) => return Vec::new(),
        Some(Value::Array(properties)) => properties,
        Some(_) => {
            problems.push(file.problem(&path, rule::FIELD_TYPE, "must be a list"));
            return Vec::new();
        }
    };
    for (index, property) in properties.iter().enumerate() {
        if let Err(message) = check_property(property) {
            problems.push(file.problem(&path.item(index), rule::PROPERTY, message));
        }
    }
    properties
}

/// Reads `metadata/dependencies.yaml`, which may be absent: a list of `{type, value}`.
pub(super) fn dependencies(files: &Files, problems: &mut Vec<Problem>) -> Option<Manifest> {
    let file = single_mapping(files, DEPENDENCIES, problems)?;
    match file.object.get("dependencies") {
        None | Some(Value::Null | Value::Array(_)) => Some(file),
        Some(_) => {
            let path = JsonPath::from_fields("dependencies");
            problems.push(file.problem(&path, rule::FIELD_TYPE, "must be a list"));
            None
        }
    }
}

/// Appends `properties` to those in the annotation `olm.properties` of the ClusterServiceVersion; an empty
/// list leaves the annotation unchanged.
pub(super) fn merge_properties(csv: &mut Manifest, properties: Vec<Value>, problems: &mut Vec<Problem>) {
    if properties.is_empty() {
        return;
    }
    let path = JsonPath::from_fields("metadata.annotations").field(OLM_PROPERTIES);
    let mut all: Vec<Value> =
        match object::annotation(&csv.object, OLM_PROPERTIES).filter(|text| !text.is_empty()) {
            None => Vec::new(),
            Some(text) => match serde_json::from_str(text) {
                Ok(written) => written,
                Err(error) => {
                    let message = format!("must be a list of properties in JSON: {error}");
                    problems.push(csv.problem(&path, rule::PROPERTY, message));
                    return;
                }
            },
        };
    all.extend(properties);
    let merged: Value = all
        .iter()
        .map(|property| json!({"type": property["type"], "value": property["value"]}))
        .collect();

    // The check of types reports a mapping that has another type.
    let Some(object) = csv.object.as_object_mut() else {
        return;
    };
    let Some(metadata) = mapping(object, "metadata") else {
        return;
    };
    let Some(annotations) = mapping(metadata, "annotations") else {
        return;
    };
    annotations.insert(OLM_PROPERTIES.to_owned(), Value::String(merged.to_string()));
}

/// Returns the mapping `name` of `parent`, creating it if absent.
fn mapping<'a>(parent: &'a mut Map<String, Value>, name: &str) -> Option<&'a mut Map<String, Value>> {
    let value = parent.entry(name).or_insert(Value::Null);
    if value.is_null() {
        *value = json!({});
    }
    value.as_object_mut()
}

fn check_property(property: &Value) -> Result<(), &'static str> {
    if !property.is_object() {
        return Err("must be a mapping of type and value");
    }
    if object::text(property, "/type").is_none_or(str::is_empty) {
        return Err("must have a type");
    }
    if property.get("value").is_none() {
        return Err("must have a value");
    }
    Ok(())
}

/// Returns the only document of `name`; `None` if the file is absent, empty or not a mapping.
fn single_mapping(files: &Files, name: &str, problems: &mut Vec<Problem>) -> Option<Manifest> {
    let mut documents = match yaml::documents(files.get(name)?) {
        Ok(documents) => documents,
        Err(message) => {
            problems.push(Problem::in_bundle(name, rule::SYNTAX, message));
            return None;
        }
    };
    if documents.len() > 1 {
        let message = "must contain exactly one document";
        problems.push(Problem::in_bundle(name, rule::NOT_AN_OBJECT, message));
        return None;
    }
    let object = documents.pop()?;
    if !object.is_object() {
        problems.push(Problem::in_bundle(name, rule::NOT_AN_OBJECT, "must be a mapping"));
        return None;
    }
    Some(Manifest {
        file: name.to_owned(),
        document: None,
        path: "$".to_owned(),
        object,
    })
}
