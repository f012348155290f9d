//! How lists and maps merge: atomic, set or map (KEP-555).

use std::sync::Arc;

use serde_json::Value;

use super::{
    builtin,
    list_type::{ListType, Path},
};

/// How the lists and maps of a kind merge.
#[derive(Clone, Debug)]
pub struct TypeSchema(Source);

#[derive(Clone, Debug)]
enum Source {
    Custom(Arc<Value>),
    BuiltIn(&'static str),
}

// === impl TypeSchema ===

impl TypeSchema {
    /// By an `openAPIV3Schema`.
    pub fn custom(schema: Value) -> Self {
        Self(Source::Custom(Arc::new(schema)))
    }

    /// By the table of built-in kinds.
    pub fn built_in(kind: &'static str) -> Self {
        Self(Source::BuiltIn(kind))
    }

    /// How the list at `path` merges.
    pub fn list(&self, path: &Path<'_>) -> ListType {
        match &self.0 {
            _ if path.first() == Some(&"metadata") => builtin::metadata_list(path),
            Source::BuiltIn(kind) => builtin::list(kind, path),
            Source::Custom(schema) => {
                let schema = at(schema, path);
                match schema["x-kubernetes-list-type"].as_str() {
                    Some("set") => ListType::Set,
                    Some("map") => ListType::Map(strings(&schema["x-kubernetes-list-map-keys"])),
                    _ => ListType::Atomic,
                }
            }
        }
    }

    /// Whether the object at `path` merges as a whole.
    pub fn is_atomic_object(&self, path: &Path<'_>) -> bool {
        match &self.0 {
            _ if path.first() == Some(&"metadata") => false,
            Source::BuiltIn(kind) => builtin::is_atomic_object(kind, path),
            Source::Custom(schema) => at(schema, path)["x-kubernetes-map-type"] == "atomic",
        }
    }

    /// Whether a field may stand at `path`, as far as the schema tells.
    pub fn declares(&self, path: &Path<'_>) -> bool {
        let Source::Custom(schema) = &self.0 else {
            return true;
        };
        if path.len() <= 1
            && path
                .first()
                .is_none_or(|name| ["apiVersion", "kind", "metadata"].contains(name))
        {
            return true;
        }
        if path.first() == Some(&"metadata") {
            return true;
        }
        let mut schema: &Value = schema;
        for name in path {
            if schema["x-kubernetes-preserve-unknown-fields"] == true {
                return true;
            }
            let next = step(schema, name);
            if next.is_null() {
                return schema["additionalProperties"] == true
                    || schema["x-kubernetes-embedded-resource"] == true;
            }
            schema = next;
        }
        true
    }
}

fn at<'a>(schema: &'a Value, path: &Path<'_>) -> &'a Value {
    path.iter().fold(schema, |schema, name| step(schema, name))
}

fn step<'a>(schema: &'a Value, name: &str) -> &'a Value {
    if name == "*" {
        return &schema["items"];
    }
    schema["properties"]
        .get(name)
        .unwrap_or(&schema["additionalProperties"])
}

fn strings(list: &Value) -> Vec<String> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect()
}
