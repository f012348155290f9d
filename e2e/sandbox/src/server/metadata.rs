//! `metadata`: defaults and validation.

use jiff::Timestamp;
use rand::{Rng, seq::IndexedRandom};
use serde_json::{Value, json};

use super::kinds::ServedResource;
use crate::{
    StatusError,
    conversion::request_uid,
    field::{FieldError, Violation},
};

/// The letters of generated names, which cannot form words.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Kinds whose objects have no `metadata.generation`.
const UNNUMBERED: &[&str] = &[
    "ConfigMap",
    "Secret",
    "ServiceAccount",
    "Service",
    "Namespace",
    "Node",
    "Event",
    "Endpoints",
    "Role",
    "RoleBinding",
    "ClusterRole",
    "ClusterRoleBinding",
    "Lease",
    "PriorityClass",
    "StorageClass",
    "APIService",
];

/// Returns the current time in the format of Kubernetes.
pub(crate) fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Reports whether objects of a kind have a `metadata.generation`.
pub(super) fn is_numbered(served: &ServedResource) -> bool {
    served.definition.is_some() || !UNNUMBERED.contains(&served.kind.as_str())
}

/// Returns five random letters, like the suffix of a name that the real server generates.
pub(super) fn random_suffix() -> String {
    let mut random = rand::rng();
    (0..5)
        .filter_map(|_| LETTERS.choose(&mut random))
        .map(|letter| char::from(*letter))
        .collect()
}

/// Fills in the metadata of a new object: name, uid, times.
///
/// # Errors
///
/// 422 when it has neither a name nor a generateName, 400 when it has a resourceVersion.
pub(super) fn prepare_create(
    object: &mut Value,
    served: &ServedResource,
    namespace: &str,
) -> Result<(), StatusError> {
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    let metadata = &mut object["metadata"];
    if metadata["resourceVersion"]
        .as_str()
        .is_some_and(|version| !version.is_empty())
    {
        return Err(StatusError::bad_request(
            "resourceVersion should not be set on objects to be created",
        ));
    }
    let prefix = metadata["generateName"].as_str().unwrap_or_default().to_owned();
    if metadata["name"].as_str().unwrap_or_default().is_empty() {
        if prefix.is_empty() {
            let error = FieldError::new(
                "metadata.name",
                Violation::Required,
                "name or generateName is required",
            );
            return Err(crate::field::invalid(&served.group, &served.kind, "", &[error]));
        }
        metadata["name"] = json!(format!("{prefix}{}", random_suffix()));
    }
    let Some(fields) = metadata.as_object_mut() else {
        return Ok(());
    };
    for name in [
        "resourceVersion",
        "selfLink",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
    ] {
        fields.remove(name);
    }
    if served.namespaced {
        fields.insert("namespace".to_owned(), json!(namespace));
    } else {
        fields.remove("namespace");
    }
    fields.insert("uid".to_owned(), json!(request_uid()));
    fields.insert("creationTimestamp".to_owned(), json!(now()));
    if is_numbered(served) {
        fields.insert("generation".to_owned(), json!(1));
    }
    Ok(())
}

/// Restores the fields of the metadata that clients cannot change.
pub(super) fn keep_immutable(object: &mut Value, current: &Value) {
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    for name in [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "generation",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "resourceVersion",
        "generateName",
    ] {
        let value = current["metadata"].get(name).cloned();
        let Some(fields) = object["metadata"].as_object_mut() else {
            return;
        };
        match value {
            Some(value) => drop(fields.insert(name.to_owned(), value)),
            None => drop(fields.remove(name)),
        }
    }
}

/// Returns the errors of an object's metadata.
pub(super) fn problems(object: &Value, current: Option<&Value>, served: &ServedResource) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    if current.is_none() && !is_valid_name(name, served) {
        let detail = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
                      and must start and end with an alphanumeric character (e.g. 'example.com', regex used for \
                      validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
        errors.push(FieldError::new(
            "metadata.name",
            Violation::Invalid(name.into()),
            detail,
        ));
    }
    for (field, longest) in [("labels", 63), ("annotations", usize::MAX)] {
        for (key, value) in object["metadata"][field].as_object().into_iter().flatten() {
            let Some(value) = value.as_str() else {
                let detail = format!("metadata.{field}.{key} must be a string");
                errors.push(FieldError::new(
                    format!("metadata.{field}"),
                    Violation::Invalid(value.clone()),
                    detail,
                ));
                continue;
            };
            if value.len() > longest {
                let detail = "must be no more than 63 characters";
                errors.push(FieldError::new(
                    "metadata.labels",
                    Violation::Invalid(value.into()),
                    detail,
                ));
            }
        }
    }
    if let Some(current) = current.filter(|current| current["metadata"]["deletionTimestamp"].is_string()) {
        let before = current["metadata"]["finalizers"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let new: Vec<String> = object["metadata"]["finalizers"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|finalizer| !before.contains(finalizer))
            .map(Value::to_string)
            .collect();
        if !new.is_empty() {
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                new.join(", ")
            );
            errors.push(FieldError::new(
                "metadata.finalizers",
                Violation::Forbidden,
                detail,
            ));
        }
    }
    errors
}

/// Names of RBAC objects may contain anything that is valid in a path.
fn is_valid_name(name: &str, served: &ServedResource) -> bool {
    if served.group == "rbac.authorization.k8s.io" {
        return !name.is_empty() && !name.contains('/') && !name.contains('%') && name != "." && name != "..";
    }
    let is_label = |part: &str| {
        let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        edge(part.chars().next())
            && edge(part.chars().last())
            && part
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

/// Returns a random number below `below`, to spread timeouts.
pub(super) fn random_below(below: u64) -> u64 {
    rand::rng().random_range(0..below.max(1))
}
