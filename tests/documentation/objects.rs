//! Every YAML block can be parsed, and objects of our kinds match their schemas.

use std::collections::BTreeMap;

use serde_json::Value;
use structural_schema::{FieldError, Structural};
use windlass::commands::manifests;
use windlass_object::object;

use crate::page::Page;

/// Returns the string at a JSON pointer, or an empty one.
fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object::text(object, pointer).unwrap_or_default()
}

/// Returns the schemas of our kinds by `apiVersion` and `kind`.
fn schemas() -> BTreeMap<(String, String), Structural> {
    let objects = manifests::objects().unwrap().into_iter();
    let objects = objects
        .chain(manifests::policies_objects())
        .chain(manifests::customization_crds());
    let definitions = objects.filter(|found| text(found, "/kind") == "CustomResourceDefinition");
    let mut schemas = BTreeMap::new();
    for definition in definitions {
        let kind = text(&definition, "/spec/names/kind");
        for version in definition["spec"]["versions"].as_array().unwrap() {
            let api_version = format!("{}/{}", text(&definition, "/spec/group"), text(version, "/name"));
            let schema = Structural::new(&version["schema"]["openAPIV3Schema"]);
            schemas.insert((api_version, kind.to_owned()), schema);
        }
    }
    schemas
}

#[test]
fn every_object_matches_its_schema() {
    let schemas = schemas();
    let mut seen = 0;
    let mut wrong = Vec::new();
    for page in Page::all() {
        for block in page.code_blocks().filter(|block| block.language == "yaml") {
            let documents: Vec<Value> = match serde_saphyr::from_multiple(block.text) {
                Ok(documents) => documents,
                Err(error) => {
                    wrong.push(format!("{}: {error}\n{}", page.path.display(), block.text));
                    continue;
                }
            };
            for mut document in documents {
                let named = ["/apiVersion", "/kind"].map(|field| text(&document, field).to_owned());
                let Some(schema) = schemas.get(&named.into()) else {
                    continue;
                };
                seen += 1;
                let name = text(&document, "/metadata/name").to_owned();
                let unknown = schema.prune(&mut document);
                let errors = schema.validate(&document, None);
                let errors = errors.iter().map(FieldError::message);
                let faults = unknown.into_iter().map(|field| format!("{field}: unknown field"));
                wrong.extend(
                    faults
                        .chain(errors)
                        .map(|fault| format!("{}: {name}: {fault}", page.path.display())),
                );
            }
        }
    }
    assert!(seen > 4, "only {seen} objects found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
