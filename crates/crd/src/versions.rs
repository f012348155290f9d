//! Reads the versions of a CustomResourceDefinition: which are served, and which is the storage version.

use serde_json::Value;
use windlass_object::object;

/// Returns the versions in their order in the spec.
pub fn versions(crd: &Value) -> &[Value] {
    object::items(crd, "/spec/versions")
}

/// Returns the version with that name; the first one if the name is repeated.
pub fn version<'a>(crd: &'a Value, name: &str) -> Option<&'a Value> {
    versions(crd).iter().find(|version| version_name(version) == name)
}

/// Returns the name of a version; empty if it has none.
pub fn version_name(version: &Value) -> &str {
    object::text(version, "/name").unwrap_or_default()
}

/// Reports whether a version is served.
pub fn is_served(version: &Value) -> bool {
    flag(version, "served")
}

/// Reports whether a version is the storage version.
pub fn is_storage(version: &Value) -> bool {
    flag(version, "storage")
}

/// Returns the name of the storage version.
pub fn storage_version(crd: &Value) -> Option<&str> {
    versions(crd)
        .iter()
        .find(|version| is_storage(version))
        .map(version_name)
}

/// Returns the name of the version to read and write objects in: the storage version if it is served, because
/// it needs no conversion, or else the first served version.
pub fn reachable_version(crd: &Value) -> Option<&str> {
    let served = || versions(crd).iter().filter(|version| is_served(version));
    served()
        .find(|version| is_storage(version))
        .or_else(|| served().next())
        .map(version_name)
}

/// Returns `status.storedVersions`, the names of the versions in which objects may be stored.
pub fn stored_versions(crd: &Value) -> Vec<&str> {
    object::items(crd, "/status/storedVersions")
        .iter()
        .filter_map(Value::as_str)
        .collect()
}

/// Reports whether a webhook converts its objects.
pub fn is_converting(crd: &Value) -> bool {
    object::text(crd, "/spec/conversion/strategy") == Some("Webhook")
}

fn flag(version: &Value, name: &str) -> bool {
    version.get(name).and_then(Value::as_bool).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_storage_version_is_preferred_for_access() {
        for (versions, expected) in [
            (&[("v1", true, false), ("v2", true, true)][..], Some("v2")),
            (
                &[("v1", true, false), ("v2", false, true), ("v3", true, false)],
                Some("v1"),
            ),
            (&[("v1", false, false), ("v2", false, true)], None),
            (&[], None),
        ] {
            let versions: Vec<_> = versions
                .iter()
                .map(|(name, served, storage)| json!({"name": name, "served": served, "storage": storage}))
                .collect();
            let crd = json!({"spec": {"versions": versions}});
            assert_eq!(reachable_version(&crd), expected);
        }
    }
}
