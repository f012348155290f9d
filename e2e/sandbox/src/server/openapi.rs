//! OpenAPI v3, which `kubectl apply` and `kubectl explain` read.
//!
//! Only custom resources have schemas. For built-in kinds without a schema, kubectl uses its compiled Go
//! types, which know how lists merge; an incomplete schema would mislead it.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{
    call::Reply,
    kinds::{Kinds, ServedResource},
};

/// Handles `/openapi/v3` and the paths that it links to.
pub(super) fn reply(kinds: &Kinds, path: &str) -> Option<Reply> {
    let rest = path.strip_prefix("/openapi/v3")?.trim_matches('/');
    let all = kinds.all();
    if rest.is_empty() {
        let mut paths = Map::new();
        for served in &all {
            let folder = folder(served);
            let document = document(&all, &folder).to_string();
            let hash: String = Sha256::digest(document)
                .iter()
                .take(16)
                .map(|byte| format!("{byte:02X}"))
                .collect();
            let url = format!("/openapi/v3/{folder}?hash={hash}");
            paths.insert(folder, json!({"serverRelativeURL": url}));
        }
        return Some(Reply::json(json!({"paths": paths})));
    }
    all.iter()
        .any(|served| folder(served) == rest)
        .then(|| Reply::json(document(&all, rest)))
}

fn folder(served: &ServedResource) -> String {
    if served.group.is_empty() {
        format!("api/{}", served.version)
    } else {
        format!("apis/{}/{}", served.group, served.version)
    }
}

fn document(all: &[ServedResource], wanted: &str) -> Value {
    let mut paths = Map::new();
    let mut schemas = Map::new();
    for served in all.iter().filter(|served| folder(served) == wanted) {
        let scope = if served.namespaced {
            "namespaces/{namespace}/"
        } else {
            ""
        };
        let path = format!("/{wanted}/{scope}{}/{{name}}", served.resource);
        paths.insert(path, json!({"patch": operation(served)}));
        let version = served
            .definition
            .as_ref()
            .and_then(|definition| definition.version(&served.version));
        if let Some(version) = version {
            schemas.insert(schema_name(served), schema(served, &version.raw_schema));
            schemas.insert(format!("{}List", schema_name(served)), list_schema(served));
        }
    }
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes CRD Swagger", "version": super::VERSION},
        "paths": paths,
        "components": {"schemas": schemas},
    })
}

fn group_version_kind(served: &ServedResource) -> Value {
    json!({"group": served.group, "version": served.version, "kind": served.kind})
}

fn operation(served: &ServedResource) -> Value {
    let query = |name: &str, kind: &str| json!({"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": true}});
    let mut content = Map::new();
    let types = [
        "application/apply-patch+yaml",
        "application/json-patch+json",
        "application/merge-patch+json",
    ];
    let strategic = served
        .definition
        .is_none()
        .then_some("application/strategic-merge-patch+json");
    for media_type in types.into_iter().chain(strategic) {
        content.insert(media_type.to_owned(), json!({"schema": {"type": "object"}}));
    }
    json!({
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": group_version_kind(served),
        "parameters": [
            query("dryRun", "string"), query("fieldManager", "string"), query("fieldValidation", "string"),
            query("force", "boolean"),
        ],
        "requestBody": {"content": content},
        "responses": {"200": {"description": "OK"}},
    })
}

/// Returns the group's labels in reverse order, the version and the kind, joined by dots.
fn schema_name(served: &ServedResource) -> String {
    let mut labels: Vec<&str> = served.group.split('.').collect();
    labels.reverse();
    format!("{}.{}.{}", labels.join("."), served.version, served.kind)
}

fn list_schema(served: &ServedResource) -> Value {
    let mut kind = group_version_kind(served);
    kind["kind"] = json!(format!("{}List", served.kind));
    let item = format!("#/components/schemas/{}", schema_name(served));
    json!({
        "type": "object",
        "required": ["items"],
        "properties": {"items": {"type": "array", "items": {"allOf": [{"$ref": item}]}}},
        "x-kubernetes-group-version-kind": [kind],
    })
}

fn schema(served: &ServedResource, raw: &Value) -> Value {
    let mut schema = raw.clone();
    if !schema.is_object() {
        schema = json!({"type": "object"});
    }
    let mut kind = group_version_kind(served);
    kind.sort_all_objects();
    schema["x-kubernetes-group-version-kind"] = json!([kind]);
    let properties = &mut schema["properties"];
    if !properties.is_object() {
        *properties = json!({});
    }
    for (name, description) in [
        (
            "apiVersion",
            "The versioned schema of this representation of an object.",
        ),
        ("kind", "The REST resource that this object represents."),
    ] {
        if properties[name].is_null() {
            properties[name] = json!({"type": "string", "description": description});
        }
    }
    properties["metadata"] = json!({"type": "object", "description": "Standard object's metadata."});
    schema
}
