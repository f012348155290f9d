//! How lists and maps merge: atomic, set or map (KEP-555).

use std::sync::Arc;

use serde_json::Value;

use super::{ListType, Path, builtin};

/// How the lists and maps of a kind merge.
#[derive(Clone, Debug)]
pub struct TypeSchema(Source);

#[derive(Clone, Debug)]
enum Source {
    Custom(Arc<Value>),
    BuiltIn(&'static str),
}

impl TypeSchema {
    /// Reads the list types from an `openAPIV3Schema`.
    pub fn custom(schema: Value) -> Self {
        Self(Source::Custom(Arc::new(schema)))
    }

    /// Uses the table of built-in kinds.
    pub fn built_in(kind: &'static str) -> Self {
        Self(Source::BuiltIn(kind))
    }

    /// Returns how the list at `path` merges.
    pub fn list(&self, path: &Path<'_>) -> ListType {
        match &self.0 {
            _ if path.first() == Some(&"metadata") => builtin::metadata_list(path),
            Source::BuiltIn(kind) => builtin::list(kind, path),
            Source::Custom(schema) => ListType::from_schema(schema_at(schema, path)),
        }
    }

    /// Reports whether the object at `path` is atomic.
    pub fn is_atomic_object(&self, path: &Path<'_>) -> bool {
        match &self.0 {
            _ if path.first() == Some(&"metadata") => false,
            Source::BuiltIn(kind) => builtin::is_atomic_object(kind, path),
            Source::Custom(schema) => schema_at(schema, path)["x-kubernetes-map-type"] == "atomic",
        }
    }

    /// Reports whether the schema allows a field at `path`.
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

fn schema_at<'a>(schema: &'a Value, path: &Path<'_>) -> &'a Value {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_lists_merge_by_their_keys() {
        let deployment = TypeSchema::built_in("Deployment");
        let containers = ["spec", "template", "spec", "containers"];
        assert_eq!(
            deployment.list(&containers),
            ListType::Map(vec!["name".to_owned()])
        );
        let ports = [containers.as_slice(), &["*", "ports"]].concat();
        assert_eq!(
            deployment.list(&ports),
            ListType::Map(vec!["containerPort".to_owned(), "protocol".to_owned()])
        );
        let args = [containers.as_slice(), &["*", "args"]].concat();
        assert_eq!(deployment.list(&args), ListType::Atomic);
        assert!(deployment.is_atomic_object(&["spec", "selector"]));
        assert_eq!(
            TypeSchema::built_in("CustomResourceDefinition").list(&["spec", "versions"]),
            ListType::Atomic
        );
    }
}
