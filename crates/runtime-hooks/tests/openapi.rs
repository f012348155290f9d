//! The OpenAPI document means what Cluster API's own means.
//!
//! `cluster-api-openapi.json` is Cluster API's own of v1.14.2, without what only people read, and with `{}` for what hooks embed
//! from elsewhere. It was printed by a Go program from the types of `sigs.k8s.io/cluster-api/api`: definitions by
//! `k8s.io/kube-openapi/cmd/openapi-gen`, the document by the rules of `hack/tools/runtime-openapi-gen`. `Catalog.OpenAPI` of
//! v1.13.6, the last that has it in the module, prints the same but for the case of hooks in `operationId`.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a document that is not as it should be fails the test"
)]

use std::collections::BTreeMap;

use runtime_hooks::{
    Catalog, Hook, HookMetadata, HookRequest, HookResponse,
    hook::HookSettings,
    response::{HookOutcome, ResponseStatus},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// `schema` without references, and without what only people read.
fn reduced(schema: &Value, document: &Value) -> Value {
    let schema = schema.as_object().expect("a schema is an object");
    if let Some(reference) = schema.get("$ref") {
        let place = reference.as_str().and_then(|place| place.strip_prefix('#'));
        let target = place.and_then(|place| document.pointer(place));
        return reduced(
            target.unwrap_or_else(|| panic!("{reference} leads nowhere")),
            document,
        );
    }
    if let Some(Value::Array(all)) = schema.get("allOf") {
        let [one] = &**all else {
            panic!("{all:?} is more than one")
        };
        return reduced(one, document);
    }
    if schema.contains_key("x-kubernetes-preserve-unknown-fields") {
        return json!({});
    }
    let mut kept = Map::new();
    for (keyword, value) in schema {
        let value = match &**keyword {
            "description" | "default" => continue,
            extension if extension.starts_with("x-") => continue,
            "properties" => {
                let fields = value.as_object().unwrap().iter();
                fields
                    .map(|(name, field)| (name.clone(), reduced(field, document)))
                    .collect()
            }
            "items" | "additionalProperties" => reduced(value, document),
            "required" => {
                let mut required: Vec<_> = value
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|name| name.as_str().unwrap())
                    .collect();
                required.sort_unstable();
                json!(required)
            }
            "type" | "format" | "enum" => value.clone(),
            other => panic!("{other}: {value} is not known"),
        };
        kept.insert(keyword.clone(), value);
    }
    kept.into()
}

/// An operation without references, and without what only people read.
fn reduced_operation(operation: &Value, document: &Value) -> Value {
    let content = |body: &Value| -> Value {
        let types = body["content"].as_object().unwrap().iter();
        types
            .map(|(media_type, body)| (media_type.clone(), reduced(&body["schema"], document)))
            .collect()
    };
    let responses = operation["responses"].as_object().unwrap().iter();
    let mut parameters = operation.get("parameters").cloned().unwrap_or_default();
    for parameter in parameters.as_array_mut().into_iter().flatten() {
        parameter.as_object_mut().unwrap().remove("description");
    }
    json!({
        "operationId": operation["operationId"],
        "tags": operation["tags"],
        "deprecated": operation.get("deprecated"),
        "parameters": parameters,
        "requestBody": content(&operation["requestBody"]),
        "responses": responses.map(|(code, response)| (code.clone(), content(response))).collect::<Value>(),
    })
}

/// Each operation by its path and method.
fn operations(document: &Value) -> BTreeMap<String, Value> {
    let paths = document["paths"].as_object().unwrap().iter();
    paths
        .flat_map(|(path, methods)| {
            let methods = methods.as_object().unwrap().iter();
            methods.map(move |(method, operation)| {
                (format!("{method} {path}"), reduced_operation(operation, document))
            })
        })
        .collect()
}

fn of_cluster_api() -> Value {
    serde_json::from_str(include_str!("cluster-api-openapi.json")).unwrap()
}

#[test]
fn the_document_means_what_cluster_api_publishes() {
    let ours = Catalog::of_cluster_api().openapi("Runtime hooks", "v1");
    assert_eq!(ours["openapi"], of_cluster_api()["openapi"]);
    assert_eq!(ours["info"], json!({"title": "Runtime hooks", "version": "v1"}));
    let (ours, theirs) = (operations(&ours), operations(&of_cluster_api()));
    assert_eq!(theirs.len(), 17);
    assert!(
        ours.keys().eq(theirs.keys()),
        "{:?}\n{:?}",
        ours.keys(),
        theirs.keys()
    );
    for (path, theirs) in theirs {
        assert_eq!(
            ours[&path], theirs,
            "{path}\nours: {:#}\ntheirs: {theirs:#}",
            ours[&path]
        );
    }
}

#[test]
fn the_comparison_sees_what_differs() {
    let whole = of_cluster_api();
    let expected = operations(&whole);
    let schemas = "/components/schemas";
    for (place, changed) in [
        (format!("{schemas}/Patch/required"), json!(["patch"])),
        (
            format!("{schemas}/Patch/properties/patch/format"),
            json!("binary"),
        ),
        (format!("{schemas}/UpgradeStep/properties"), json!({})),
        (
            format!("{schemas}/DiscoveryResponse/properties/handlers/items"),
            json!({}),
        ),
        (
            format!("{schemas}/BeforeClusterCreateResponse/properties/status/enum"),
            json!(["Success"]),
        ),
        (
            format!("{schemas}/BeforeClusterCreateRequest/properties/settings/additionalProperties"),
            json!({}),
        ),
    ] {
        let mut document = whole.clone();
        *document
            .pointer_mut(&place)
            .unwrap_or_else(|| panic!("{place} is not there")) = changed;
        assert_ne!(operations(&document), expected, "{place}");
    }
}

#[test]
fn people_are_told_what_each_hook_is_for() {
    let document = Catalog::of_cluster_api().openapi("Runtime hooks", "v1");
    for (path, methods) in document["paths"].as_object().unwrap() {
        for field in ["summary", "description"] {
            assert!(
                methods["post"][field]
                    .as_str()
                    .is_some_and(|text| !text.is_empty()),
                "{path}: {field}"
            );
        }
    }
    let text = document.to_string();
    assert!(
        !text.contains("](") && !text.contains("[`"),
        "a link of rustdoc leads nowhere here"
    );
}

struct Brew;

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct BrewRequest {
    settings: HookSettings,
    cups: Option<u8>,
}

/// A request that is nothing but one, in a type of its own.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
struct AnyRequest(Value);

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
struct BrewResponse {
    status: ResponseStatus,
}

impl HookRequest for BrewRequest {
    const HAS_SETTINGS: bool = true;
}

impl HookRequest for AnyRequest {
    const HAS_SETTINGS: bool = false;
}

impl HookResponse for BrewResponse {
    fn outcome(&self) -> HookOutcome {
        HookOutcome {
            status: self.status.clone(),
            ..HookOutcome::default()
        }
    }

    fn set_outcome(&mut self, outcome: HookOutcome) {
        self.status = outcome.status;
    }
}

impl Hook for Brew {
    type Request = BrewRequest;
    type Response = BrewResponse;
    const GROUP: &'static str = "hooks.example.com";
    const VERSION: &'static str = "v1";
    const NAME: &'static str = "Brew";
    const METADATA: HookMetadata = HookMetadata {
        deprecated: true,
        singleton: true,
        ..HookMetadata::new()
    };
}

struct Anything;

impl Hook for Anything {
    type Request = AnyRequest;
    type Response = BrewResponse;
    const GROUP: &'static str = "hooks.example.com";
    const VERSION: &'static str = "v1";
    const NAME: &'static str = "Anything";
}

#[test]
fn hooks_of_anybody_are_documented() {
    let mut catalog = Catalog::new();
    catalog
        .register::<Brew>()
        .unwrap()
        .register::<Anything>()
        .unwrap();
    let document = catalog.openapi("Coffee", "v1");
    let brew = &document["paths"]["/hooks.example.com/v1/brew"]["post"];
    assert_eq!(
        (&brew["operationId"], &brew["deprecated"]),
        (&json!("hooksExampleComV1Brew"), &json!(true))
    );
    for absent in ["parameters", "tags", "summary", "description"] {
        assert!(brew.get(absent).is_none(), "{absent}");
    }
    let schema = &document["components"]["schemas"]["BrewRequest"];
    assert_eq!(schema["required"], json!(["settings", "cups"]));
    assert_eq!(schema["properties"]["cups"]["nullable"], true);
    let fields: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(fields, ["kind", "apiVersion", "settings", "cups"]);
    let response = &brew["responses"]["200"]["content"]["application/json"]["schema"];
    let fields: Vec<_> = response["properties"].as_object().unwrap().keys().collect();
    assert_eq!(
        fields,
        ["kind", "apiVersion", "status"],
        "of a type without a name"
    );
    let anything = &document["paths"]["/hooks.example.com/v1/anything/{name}"]["post"];
    let name = anything["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        .as_str()
        .unwrap();
    let any = document.pointer(name.strip_prefix('#').unwrap()).unwrap();
    assert_eq!(any["properties"]["kind"]["type"], "string");
}
