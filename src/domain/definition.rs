//! Reading a CustomResourceDefinition: its versions, which of them are served, and in which objects are stored.

use serde_json::Value;

use crate::domain::object;

/// The versions, in the order in which they are written.
pub fn versions(definition: &Value) -> &[Value] {
    object::items(definition, "/spec/versions")
}

/// The version of that name; of two with one name the first.
pub fn version<'a>(definition: &'a Value, name: &str) -> Option<&'a Value> {
    versions(definition)
        .iter()
        .find(|version| self::name(version) == name)
}

/// The name of a version; empty where it has none.
pub fn name(version: &Value) -> &str {
    object::text(version, "/name").unwrap_or_default()
}

/// Whether API traffic reaches a version.
pub fn is_served(version: &Value) -> bool {
    flag(version, "served")
}

/// Whether objects that are written are stored in a version.
pub fn is_storage(version: &Value) -> bool {
    flag(version, "storage")
}

/// The name of the version in which objects that are written are stored.
pub fn storage_version(definition: &Value) -> Option<&str> {
    versions(definition)
        .iter()
        .find(|version| is_storage(version))
        .map(name)
}

/// `status.storedVersions`: the names of the versions in which objects may be stored.
pub fn stored_versions(definition: &Value) -> Vec<&str> {
    object::items(definition, "/status/storedVersions")
        .iter()
        .filter_map(Value::as_str)
        .collect()
}

fn flag(version: &Value, name: &str) -> bool {
    version.get(name).and_then(Value::as_bool).unwrap_or(false)
}
