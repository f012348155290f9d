//! Kubernetes objects as JSON: keys of objects and accessors for the fields that every kind has.
//!
//! Objects that Windlass does not define stay [`serde_json::Value`] from reading to writing, so that unknown
//! fields are preserved.

use std::fmt;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;
use zeroize::Zeroize;

/// The identity of an object in a cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// The cluster that has the object.
    pub cluster: InCluster,
    /// `group/version`, or only the version for the core group.
    pub api_version: String,
    /// The kind, for example `Deployment`.
    pub kind: String,
    /// The namespace; `None` for cluster-scoped objects.
    pub namespace: Option<String>,
    /// `metadata.name`.
    pub name: String,
}

/// One of the two clusters that Windlass works on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InCluster {
    /// The cluster that Windlass runs in, with Secrets, Services and all installed objects.
    #[default]
    Local,
    /// The second cluster, which a kubeconfig connects to, such as the API server of a control plane that
    /// runs in the local cluster. Windlass only manages targets there.
    Remote,
}

impl ObjectKey {
    /// Returns the key of `object` in the local cluster; `None` if it lacks an apiVersion, a kind or a name.
    pub fn from_object(object: &Value) -> Option<Self> {
        Some(Self {
            cluster: InCluster::Local,
            api_version: text(object, "/apiVersion")?.to_owned(),
            kind: text(object, "/kind")?.to_owned(),
            namespace: text(object, "/metadata/namespace").map(str::to_owned),
            name: text(object, "/metadata/name")?.to_owned(),
        })
    }

    /// Returns the same key in another cluster.
    #[must_use]
    pub fn in_cluster(self, cluster: InCluster) -> Self {
        Self { cluster, ..self }
    }

    /// Returns the API group; empty for the core group.
    pub fn group(&self) -> &str {
        group_and_version(&self.api_version).0
    }

    /// Reports whether both keys name the same object. A kind may be served in several versions of its group,
    /// each of which returns all its objects.
    pub fn is_same_object(&self, other: &Self) -> bool {
        (
            self.cluster,
            self.group(),
            &self.kind,
            &self.namespace,
            &self.name,
        ) == (
            other.cluster,
            other.group(),
            &other.kind,
            &other.namespace,
            &other.name,
        )
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }?;
        write!(f, "{}", self.cluster)
    }
}

/// Printed after the name of an object or a kind; empty for the local cluster.
impl fmt::Display for InCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => Ok(()),
            Self::Remote => f.write_str(" in the remote cluster"),
        }
    }
}

/// Splits an apiVersion into group and version; the core group is empty.
pub fn group_and_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// Returns the version of an object within its group.
pub fn version(object: &Value) -> &str {
    group_and_version(text(object, "/apiVersion").unwrap_or_default()).1
}

/// Returns the value at a JSON pointer (RFC 6901), like [`Value::pointer`], which allocates two strings for
/// each part of the pointer.
pub fn at<'a>(object: &'a Value, pointer: &str) -> Option<&'a Value> {
    if pointer.contains('~') {
        return object.pointer(pointer);
    }
    let Some(tokens) = pointer.strip_prefix('/') else {
        return pointer.is_empty().then_some(object);
    };
    tokens.split('/').try_fold(object, |value, token| match value {
        Value::Object(fields) => fields.get(token),
        // serde_json decides which numbers are valid indices.
        Value::Array(_) => value.pointer(&format!("/{token}")),
        _ => None,
    })
}

/// Returns the string at a JSON pointer, for example `/metadata/name`.
pub fn text<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    at(object, pointer).and_then(Value::as_str)
}

/// Returns the items at a JSON pointer; empty if there is no list.
pub fn items<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    at(object, pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Reports whether an object is being deleted: it still exists, and its name is still taken.
pub fn is_terminating(object: &Value) -> bool {
    text(object, "/metadata/deletionTimestamp").is_some()
}

/// Returns the status condition of a type.
pub fn condition<'a>(object: &'a Value, condition_type: &str) -> Option<&'a Value> {
    items(object, "/status/conditions")
        .iter()
        .find(|condition| text(condition, "/type") == Some(condition_type))
}

/// Returns the finalizers, which block the deletion of an object.
pub fn finalizers(object: &Value) -> Vec<&str> {
    items(object, "/metadata/finalizers")
        .iter()
        .filter_map(Value::as_str)
        .collect()
}

/// Returns the decoded value of a key of a Secret; `None` if it is missing or invalid base64.
pub fn data(secret: &Value, key: &str) -> Option<Vec<u8>> {
    let encoded = secret.get("data")?.get(key)?.as_str()?;
    STANDARD.decode(encoded).ok()
}

/// Overwrites the data of a Secret before its memory is reused.
pub fn wipe_data(secret: &mut Value) {
    let Some(Value::Object(data)) = secret.get_mut("data") else {
        return;
    };
    for value in data.values_mut() {
        if let Value::String(text) = value {
            text.zeroize();
        }
    }
}

/// Returns the value of an annotation.
pub fn annotation<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    at(object, "/metadata/annotations")?.get(name)?.as_str()
}

/// Returns the value of a label.
pub fn label<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    at(object, "/metadata/labels")?.get(name)?.as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pointers_resolve_as_in_serde_json() {
        let object =
            json!({"a": {"b/c": 1, "d~e": 2, "": {"": 3}, "0": 4}, "items": [5, {"name": 6}], "text": "t"});
        for pointer in [
            "",
            "/",
            "a",
            "/a",
            "/a/",
            "/a//",
            "/a/b~1c",
            "/a/d~0e",
            "/a/d~e",
            "/a/0",
            "/items/0",
            "/items/1/name",
            "/items/01",
            "/items/+1",
            "/items/-",
            "/items/2",
            "/items/1/name/x",
            "/text/0",
            "/none",
            "//a",
        ] {
            assert_eq!(at(&object, pointer), object.pointer(pointer), "{pointer}");
        }
    }

    #[test]
    fn a_wiped_secret_has_no_data() {
        let mut secret =
            serde_json::json!({"metadata": {"name": "a"}, "data": {"tls.key": "aGlkZGVu", "odd": null}});
        wipe_data(&mut secret);
        assert_eq!(
            secret,
            serde_json::json!({"metadata": {"name": "a"}, "data": {"tls.key": "", "odd": null}})
        );
        wipe_data(&mut Value::Null);
    }

    #[test]
    fn keys_of_the_remote_cluster_name_the_cluster() {
        let hooks = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "n", "name": "a"}});
        let key = ObjectKey::from_object(&hooks).unwrap();
        assert_eq!(key.to_string(), "ConfigMap n/a");
        let remote = key.in_cluster(InCluster::Remote);
        assert_eq!(remote.to_string(), "ConfigMap n/a in the remote cluster");
    }

    #[test]
    fn keys_in_different_versions_name_the_same_object() {
        let key = |api_version: &str, kind: &str, namespace: Option<&str>| ObjectKey {
            cluster: InCluster::Local,
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.map(str::to_owned),
            name: "a".to_owned(),
        };
        let plugin = key("console.openshift.io/v1", "ConsolePlugin", None);
        assert!(!plugin.is_same_object(&plugin.clone().in_cluster(InCluster::Remote)));
        for (other, expected) in [
            (key("console.openshift.io/v1alpha1", "ConsolePlugin", None), true),
            (key("console.openshift.io/v1", "ConsoleLink", None), false),
            (key("console.example.com/v1", "ConsolePlugin", None), false),
            (key("console.openshift.io/v1", "ConsolePlugin", Some("n")), false),
        ] {
            assert_eq!(plugin.is_same_object(&other), expected, "{other:?}");
        }
    }
}
