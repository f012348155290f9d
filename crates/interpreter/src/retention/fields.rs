//! Fields that a cluster sets and that are kept, by their JSONPaths: `retention.fields`.
//!
//! Karmada's proposal of configurable local value retention asks for them as `fields` beside `retentionLua`, and leaves open what they
//! mean. Here:
//!
//! - Paths are Kubernetes's JSONPaths, as the crate `json-path` reads them.
//! - What a path leads to in the observed object is copied to the same place in the desired one. What is not there, or null, changes
//!   nothing: a path never deletes.
//! - Objects on the way that the desired object lacks are made. What else it has there instead stays.
//! - Items of lists are the same that have the same `name`, in lists of objects of which each has a name of its own; in all other
//!   lists those at the same index. What a filter selects by one value, as in `[?(@.type=="Ready")]`, is in a list without names what
//!   the same filter selects in the desired object.
//! - An item that the desired object lacks is appended if the path ends at it, such as `.spec.containers[?(@.name=="proxy")]`, or if a
//!   filter says by one value which it is. A path that goes on behind `[*]` leaves items alone that are no longer desired.
//! - Paths are followed in their order, before a script of the same customization: it gets what the paths have made of the desired
//!   object.
//! - A customization of a kind with paths replaces what is known of its retention otherwise, unless it chains.

use json_path::{Path, PathError};
use serde_json::Value;
use thiserror::Error;

/// By what the items of lists are the same.
const LIST_KEY: &str = "name";

/// Paths, compiled.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RetainedFields(Vec<Path>);

/// Why nothing can be kept by a path.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RetainedFieldsError {
    /// It is none.
    #[error(transparent)]
    Path(#[from] PathError),
    /// It leads to the object itself: nothing desired would ever be written.
    #[error("{0:?} leads to the whole object")]
    Root(
        /// The path.
        String,
    ),
}

// === impl RetainedFields ===

impl RetainedFields {
    /// Compiles paths.
    ///
    /// # Errors
    ///
    /// For each that cannot be used, with its index.
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

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The desired object with these fields of the observed one.
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

    fn retained(paths: &[&str], desired: &Value, observed: &Value) -> Value {
        let paths: Vec<_> = paths.iter().map(|path| (*path).to_owned()).collect();
        RetainedFields::compile(&paths).unwrap().retain(desired, observed)
    }

    #[test]
    fn what_a_cluster_sets_is_kept() {
        for (path, observed, desired, expected) in [
            // An autoscaler.
            (
                ".spec.replicas",
                json!({"spec": {"replicas": 5}}),
                json!({"spec": {"replicas": 1}}),
                json!({"spec": {"replicas": 5}}),
            ),
            // Before there is one.
            (
                ".spec.replicas",
                json!({"spec": {}}),
                json!({"spec": {"replicas": 1}}),
                json!({"spec": {"replicas": 1}}),
            ),
            // Whatever a webhook has injected into containers that are still desired.
            (
                ".spec.containers[*].env[?(@.name==\"HOST\")]",
                json!({"spec": {"containers": [
                    {"name": "old", "env": [{"name": "HOST", "value": "a"}]},
                    {"name": "main", "env": [{"name": "X"}, {"name": "HOST", "value": "b"}]},
                ]}}),
                json!({"spec": {"containers": [{"name": "main", "env": [{"name": "Y"}]}]}}),
                json!({"spec": {"containers": [{"name": "main", "env": [{"name": "Y"}, {"name": "HOST", "value": "b"}]}]}}),
            ),
            // A sidecar.
            (
                ".spec.containers[?(@.name==\"proxy\")]",
                json!({"spec": {"containers": [{"name": "proxy", "image": "p"}, {"name": "main", "image": "old"}]}}),
                json!({"spec": {"containers": [{"name": "main", "image": "new"}]}}),
                json!({"spec": {"containers": [{"name": "main", "image": "new"}, {"name": "proxy", "image": "p"}]}}),
            ),
            // Ports of a Service, with names and the one without.
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
            assert_eq!(retained(&[path], &desired, &observed), expected, "{path}");
        }
    }

    #[test]
    fn paths_are_followed_in_their_order() {
        let observed = json!({"a": {"b": 1}});
        let desired = json!({"a": {"c": 2}});
        assert_eq!(retained(&[".a.b", ".a"], &desired, &observed), observed);
        assert_eq!(retained(&[], &desired, &observed), desired);
    }

    #[test]
    fn every_path_that_cannot_be_used_is_told() {
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
                "2: \"$\" leads to the whole object",
                "3: \"{.}\" leads to the whole object",
            ]
        );
        assert!(RetainedFields::default().is_empty());
    }
}
