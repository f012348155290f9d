//! The OpenAPI document of a catalog, like the one that Cluster API publishes
//! (`hack/tools/runtime-openapi-gen/openapi.go`).

use schemars::{Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use super::{Catalog, HookDefinition};
use crate::HookReference;

/// The prefix of references to schemas.
const COMPONENTS: &str = "#/components/schemas/";

impl Catalog {
    /// Returns the OpenAPI document (version 3.0.0) of all hooks.
    ///
    /// Fields that are always encoded are required, although decoding does not need them.
    ///
    /// ```
    /// let document = runtime_hooks::Catalog::cluster_api().openapi("Runtime hooks", "v1.14.2");
    /// let discovery = &document["paths"]["/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery"]["post"];
    /// assert_eq!(discovery["operationId"], "hooksRuntimeClusterV1alpha1Discovery");
    /// ```
    pub fn openapi(&self, title: &str, version: &str) -> Value {
        let mut schemas = SchemaSettings::openapi3().for_serialize().into_generator();
        let path = |hook: &HookDefinition| match hook.metadata().singleton {
            true => hook.reference().path(),
            false => format!("{}/{{name}}", hook.reference().path()),
        };
        let paths: Map<_, _> = self
            .hooks()
            .map(|hook| (path(hook), json!({ "post": operation(hook, &mut schemas) })))
            .collect();
        json!({
            "openapi": "3.0.0",
            "info": { "title": title, "version": version },
            "paths": paths,
            "components": { "schemas": schemas.take_definitions(true) },
        })
    }
}

fn operation(hook: &HookDefinition, schemas: &mut SchemaGenerator) -> Value {
    let metadata = hook.metadata();
    let mut operation = Map::new();
    if !metadata.tags.is_empty() {
        operation.insert("tags".into(), metadata.tags.into());
    }
    for (field, text) in [
        ("summary", metadata.summary),
        ("description", metadata.description),
    ] {
        if !text.is_empty() {
            operation.insert(field.into(), text.into());
        }
    }
    operation.insert("operationId".into(), operation_id(hook.reference()).into());
    if !metadata.singleton {
        let name = json!({
            "name": "name",
            "in": "path",
            "description": "The name of the handler in the server.",
            "required": true,
            "schema": { "type": "string" },
        });
        operation.insert("parameters".into(), json!([name]));
    }
    let request = hook.request_schema(schemas);
    let response = hook.response_schema(schemas);
    operation.insert(
        "requestBody".into(),
        json!({ "content": content(request, schemas) }),
    );
    let answered = json!({
        "description": "The handler has answered; the status field reports whether it succeeded.",
        "content": content(response, schemas),
    });
    operation.insert("responses".into(), json!({ "200": answered }));
    if metadata.deprecated {
        operation.insert("deprecated".into(), true.into());
    }
    operation.into()
}

/// A JSON body with the fields of `schema`, `kind` and `apiVersion`.
fn content(mut schema: Schema, schemas: &mut SchemaGenerator) -> Value {
    let reference = schema.get("$ref").and_then(Value::as_str);
    let component = reference.and_then(|reference| reference.strip_prefix(COMPONENTS));
    let component = component.and_then(|name| schemas.definitions_mut().get_mut(name));
    match component.and_then(|component| <&mut Schema>::try_from(component).ok()) {
        Some(component) => add_type(component),
        None => {
            add_type(&mut schema);
            for transform in schemas.transforms_mut() {
                transform.transform(&mut schema);
            }
        }
    }
    json!({ "application/json": { "schema": schema } })
}

/// Adds `kind` and `apiVersion` in front of the other fields.
fn add_type(schema: &mut Schema) {
    let object = schema.ensure_object();
    let fields = match object.remove("properties") {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    let field = |description: &str| json!({ "type": "string", "description": description });
    let mut typed = Map::new();
    typed.insert("kind".into(), field("The type of this object."));
    typed.insert(
        "apiVersion".into(),
        field("The group and version of this object's type, separated by a slash."),
    );
    typed.extend(fields);
    object.insert("properties".into(), typed.into());
}

/// Returns, for example, `hooksRuntimeClusterV1alpha1Discovery`.
fn operation_id(hook: &HookReference) -> String {
    let group = hook.group();
    let group = group.strip_suffix(".x-k8s.io").unwrap_or(group);
    let (first, others) = group.split_once('.').unwrap_or((group, ""));
    let words = others.split('.').chain([hook.version(), &*hook.hook]);
    [first.to_owned()]
        .into_iter()
        .chain(words.map(capitalized))
        .collect()
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_id_has_group_version_and_hook() {
        for (api_version, hook, expected) in [
            (
                "hooks.runtime.cluster.x-k8s.io/v1alpha1",
                "BeforeClusterCreate",
                "hooksRuntimeClusterV1alpha1BeforeClusterCreate",
            ),
            (
                "hooks.example.com/v1",
                "beforeCoffee",
                "hooksExampleComV1BeforeCoffee",
            ),
            ("coffee/v1", "Brew", "coffeeV1Brew"),
            ("v1", "Brew", "V1Brew"),
        ] {
            let hook = HookReference {
                api_version: api_version.into(),
                hook: hook.into(),
            };
            assert_eq!(operation_id(&hook), expected);
        }
    }
}
