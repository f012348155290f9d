//! Validation and union of dependencies.

use std::cmp::Ordering;

use thiserror::Error;

use crate::answer::DependentObjectReference;

/// An invalid dependency (`VerifyDependencies` of Karmada).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("dependencies[{index}]: {problem}")]
pub struct InvalidDependencyError {
    index: usize,
    problem: String,
}

/// Validates dependencies, sorts them by apiVersion, kind, namespace and name, and removes duplicates.
///
/// # Errors
///
/// When one has no apiVersion or kind, or neither a name nor a valid labelSelector.
pub fn merge_dependencies(
    mut dependencies: Vec<DependentObjectReference>,
) -> Result<Vec<DependentObjectReference>, InvalidDependencyError> {
    for (index, dependency) in dependencies.iter().enumerate() {
        dependency
            .check()
            .map_err(|problem| InvalidDependencyError { index, problem })?;
    }
    dependencies.sort_by(order);
    // References that differ only in their selector need not be adjacent.
    let mut united: Vec<DependentObjectReference> = Vec::with_capacity(dependencies.len());
    for dependency in dependencies {
        let mut alike = united
            .iter()
            .rev()
            .take_while(|other| order(other, &dependency).is_eq());
        if !alike.any(|other| *other == dependency) {
            united.push(dependency);
        }
    }
    Ok(united)
}

fn order(left: &DependentObjectReference, right: &DependentObjectReference) -> Ordering {
    let key = |reference: &DependentObjectReference| {
        (
            reference.api_version.clone(),
            reference.kind.clone(),
            reference.namespace.clone(),
            reference.name.clone(),
        )
    };
    key(left).cmp(&key(right))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn references(written: Value) -> Vec<DependentObjectReference> {
        serde_json::from_value(written).unwrap()
    }

    #[test]
    fn dependencies_are_sorted_and_deduplicated() {
        let written = json!([
            {"apiVersion": "v1", "kind": "Secret", "namespace": "n", "name": "b"},
            {"apiVersion": "v1", "kind": "Secret", "namespace": "n", "name": "a"},
            {"apiVersion": "v1", "kind": "Secret", "labelSelector": {"matchLabels": {"a": "1"}}},
            {"apiVersion": "v1", "kind": "Secret", "labelSelector": {"matchLabels": {"a": "2"}}},
            {"apiVersion": "v1", "kind": "Secret", "labelSelector": {"matchLabels": {"a": "1"}}},
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": "z"},
            {"apiVersion": "v1", "kind": "Secret", "namespace": "n", "name": "a"},
            {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "n", "name": "z"},
        ]);
        let expected = json!([
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": "z"},
            {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "n", "name": "z"},
            {"apiVersion": "v1", "kind": "Secret", "labelSelector": {"matchLabels": {"a": "1"}}},
            {"apiVersion": "v1", "kind": "Secret", "labelSelector": {"matchLabels": {"a": "2"}}},
            {"apiVersion": "v1", "kind": "Secret", "namespace": "n", "name": "a"},
            {"apiVersion": "v1", "kind": "Secret", "namespace": "n", "name": "b"},
        ]);
        assert_eq!(json!(merge_dependencies(references(written)).unwrap()), expected);
    }

    #[test]
    fn invalid_dependencies_are_rejected() {
        for (wrong, expected) in [
            (
                json!({"apiVersion": "", "kind": "A", "name": "a"}),
                "apiVersion: is missing",
            ),
            (
                json!({"apiVersion": "v1", "kind": "", "name": "a"}),
                "kind: is missing",
            ),
            (
                json!({"apiVersion": "v1", "kind": "A"}),
                "name or labelSelector: is missing",
            ),
            (
                json!({"apiVersion": "v1", "kind": "A", "labelSelector": {"matchLabels": []}}),
                "labelSelector: .matchLabels: must be a map of strings",
            ),
        ] {
            let right = json!({"apiVersion": "v1", "kind": "A", "name": "a"});
            let error = merge_dependencies(references(json!([right, wrong])))
                .unwrap_err()
                .to_string();
            assert_eq!(error, format!("dependencies[1]: {expected}"));
        }
    }
}
