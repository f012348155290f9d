//! Fields of the cluster to keep, by JSONPath: `retention.fields`.
//!
//! Karmada's proposal for configurable local value retention has `fields` in addition to `retentionLua`, but does not define their
//! semantics. Here:
//!
//! - Paths are Kubernetes's JSONPaths, parsed by the crate `json-path`.
//! - The values that a path selects in the observed object are copied to the same place in the desired one. An absent or null value
//!   changes nothing: a path never deletes.
//! - Missing parent objects are created in the desired object. A value of another type in their place is kept.
//! - Items of lists are matched by `name`, if every item is an object with a unique name, else by index. In a list without names, items
//!   that a filter selects by one value, as in `[?(@.type=="Ready")]`, match those that the same filter selects in the desired object.
//! - A missing item is appended to the desired object if the path ends at it, such as `.spec.containers[?(@.name=="proxy")]`, or if a
//!   filter selects it by one value. A path that continues after `[*]` does not restore items that are no longer desired.
//! - Paths are applied in order, before a script of the same customization, which gets the changed desired object.
//! - A customization with paths replaces other retention rules for its kind, unless it chains.

use json_path::{Path, PathError};
use serde_json::Value;
use thiserror::Error;

/// The field that identifies items of lists.
const LIST_KEY: &str = "name";

/// Compiled paths of the fields to retain.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RetainedFields(Vec<Path>);

/// Why a path cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RetainedFieldsError {
    /// The text is not a path.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The path selects the whole object, so that no desired value would ever be written.
    #[error("{0:?} selects the whole object")]
    Root(String),
}

impl RetainedFields {
    /// Compiles paths.
    ///
    /// # Errors
    ///
    /// Each invalid path with its index.
    pub fn compile(paths: &[String]) -> Result<Self, Vec<(usize, RetainedFieldsError)>> {
        let mut fields = Vec::new();
        let mut errors = Vec::new();
        for (index, text) in paths.iter().enumerate() {
            match Path::parse(text) {
                Ok(path) if path.is_root() => errors.push((index, RetainedFieldsError::Root(text.clone()))),
                Ok(path) => fields.push(path),
                Err(error) => errors.push((index, error.into())),
            }
        }
        if errors.is_empty() {
            Ok(Self(fields))
        } else {
            Err(errors)
        }
    }

    /// Reports whether there are no paths.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the desired object with these fields of the observed one.
    pub fn retain(&self, desired: &Value, observed: &Value) -> Value {
        let mut retained = desired.clone();
        for path in &self.0 {
            path.copy_by_key(LIST_KEY, observed, &mut retained);
        }
        retained
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn retain_fields(paths: &[&str], desired: &Value, observed: &Value) -> Value {
        let paths: Vec<_> = paths.iter().map(|path| (*path).to_owned()).collect();
        RetainedFields::compile(&paths).unwrap().retain(desired, observed)
    }

    #[test]
    fn values_of_the_cluster_are_kept() {
        for (path, observed, desired, expected) in [
            // An autoscaler has changed the replicas.
            (
                ".spec.replicas",
                json!({"spec": {"replicas": 5}}),
                json!({"spec": {"replicas": 1}}),
                json!({"spec": {"replicas": 5}}),
            ),
            // No autoscaler exists yet.
            (
                ".spec.replicas",
                json!({"spec": {}}),
                json!({"spec": {"replicas": 1}}),
                json!({"spec": {"replicas": 1}}),
            ),
            // Values that a webhook has injected into desired containers.
            (
                ".spec.containers[*].env[?(@.name==\"HOST\")]",
                json!({"spec": {"containers": [
                    {"name": "old", "env": [{"name": "HOST", "value": "a"}]},
                    {"name": "main", "env": [{"name": "X"}, {"name": "HOST", "value": "b"}]},
                ]}}),
                json!({"spec": {"containers": [{"name": "main", "env": [{"name": "Y"}]}]}}),
                json!({"spec": {"containers": [{"name": "main", "env": [{"name": "Y"}, {"name": "HOST", "value": "b"}]}]}}),
            ),
            // A webhook has injected a sidecar.
            (
                ".spec.containers[?(@.name==\"proxy\")]",
                json!({"spec": {"containers": [{"name": "proxy", "image": "p"}, {"name": "main", "image": "old"}]}}),
                json!({"spec": {"containers": [{"name": "main", "image": "new"}]}}),
                json!({"spec": {"containers": [{"name": "main", "image": "new"}, {"name": "proxy", "image": "p"}]}}),
            ),
            // Ports of a Service, with and without names.
            (
                ".spec.ports[*].nodePort",
                json!({"spec": {"ports": [{"name": "b", "nodePort": 2}, {"name": "a", "nodePort": 1}]}}),
                json!({"spec": {"ports": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}}),
                json!({"spec": {"ports": [{"name": "a", "nodePort": 1}, {"name": "b", "nodePort": 2}, {"name": "c"}]}}),
            ),
            (
                ".spec.ports[?(@.nodePort)].nodePort",
                json!({"spec": {"ports": [{"nodePort": 1}]}}),
                json!({"spec": {"ports": [{"port": 80}]}}),
                json!({"spec": {"ports": [{"port": 80, "nodePort": 1}]}}),
            ),
            (
                ".metadata.annotations['a.b/c']",
                json!({"metadata": {"annotations": {"a.b/c": "1", "d": "2"}}}),
                json!({}),
                json!({"metadata": {"annotations": {"a.b/c": "1"}}}),
            ),
        ] {
            assert_eq!(retain_fields(&[path], &desired, &observed), expected, "{path}");
        }
    }

    #[test]
    fn paths_are_applied_in_order() {
        let observed = json!({"a": {"b": 1}});
        let desired = json!({"a": {"c": 2}});
        assert_eq!(retain_fields(&[".a.b", ".a"], &desired, &observed), observed);
        assert_eq!(retain_fields(&[], &desired, &observed), desired);
    }

    #[test]
    fn every_invalid_path_is_reported() {
        let paths = [".a", ".b[", "$", "{.}"].map(str::to_owned);
        let errors = RetainedFields::compile(&paths).unwrap_err();
        let told: Vec<_> = errors
            .iter()
            .map(|(index, error)| format!("{index}: {error}"))
            .collect();
        assert_eq!(
            told,
            [
                "1: \".b[\" is not a JSONPath: expected \"]\" at column 4",
                "2: \"$\" selects the whole object",
                "3: \"{.}\" selects the whole object",
            ]
        );
        assert!(RetainedFields::default().is_empty());
    }
}
