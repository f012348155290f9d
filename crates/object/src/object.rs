//! Kubernetes objects as JSON: how to name one and how to read the fields that every kind has.
//!
//! Objects of others stay [`serde_json::Value`] from the file or the API server to the API server, so that
//! nothing is lost that Windlass does not know.

use std::fmt;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;
use zeroize::Zeroize;

/// Names one object in a cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Where it is.
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

/// Which of the clusters that Windlass works on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InCluster {
    /// The one that Windlass belongs to: Secrets, Services and everything that is installed are there.
    #[default]
    Own,
    /// Another that a kubeconfig leads to, such as the API server of a control plane that runs in the own cluster. Only targets
    /// are looked at there.
    Remote,
}

// === impl ObjectKey ===

impl ObjectKey {
    /// Reads the key of `object` of the own cluster; `None` when it lacks an apiVersion, a kind or a name.
    pub fn of(object: &Value) -> Option<Self> {
        Some(Self {
            cluster: InCluster::Own,
            api_version: text(object, "/apiVersion")?.to_owned(),
            kind: text(object, "/kind")?.to_owned(),
            namespace: text(object, "/metadata/namespace").map(str::to_owned),
            name: text(object, "/metadata/name")?.to_owned(),
        })
    }

    /// The same in that cluster.
    #[must_use]
    pub fn in_cluster(self, cluster: InCluster) -> Self {
        Self { cluster, ..self }
    }

    /// The API group; empty for the core group.
    pub fn group(&self) -> &str {
        group_and_version(&self.api_version).0
    }

    /// Whether both name the same object: a kind may be served in several versions of its group, and each of them shows
    /// all its objects.
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

/// What follows the name of an object or a kind: nothing for those of the own cluster.
impl fmt::Display for InCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own => Ok(()),
            Self::Remote => f.write_str(" in the remote cluster"),
        }
    }
}

/// The two parts of an apiVersion; the core group is empty.
pub fn group_and_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// The version of an object within its group.
pub fn version(object: &Value) -> &str {
    group_and_version(text(object, "/apiVersion").unwrap_or_default()).1
}

/// The value at a JSON pointer (RFC 6901), as [`Value::pointer`] finds it, which makes two strings for each part of the pointer.
pub fn at<'a>(object: &'a Value, pointer: &str) -> Option<&'a Value> {
    if pointer.contains('~') {
        return object.pointer(pointer);
    }
    let Some(tokens) = pointer.strip_prefix('/') else {
        return pointer.is_empty().then_some(object);
    };
    tokens.split('/').try_fold(object, |value, token| match value {
        Value::Object(fields) => fields.get(token),
        // Which numbers are those of items is left to serde_json.
        Value::Array(_) => value.pointer(&format!("/{token}")),
        _ => None,
    })
}

/// The string at a JSON pointer, for example `/metadata/name`.
pub fn text<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    at(object, pointer).and_then(Value::as_str)
}

/// The items at a JSON pointer; empty when there is no list.
pub fn items<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    at(object, pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Whether an object is being deleted: it is still there, and no other can take its name yet.
pub fn is_terminating(object: &Value) -> bool {
    text(object, "/metadata/deletionTimestamp").is_some()
}

/// The condition of that type in the status of an object.
pub fn condition<'a>(object: &'a Value, condition_type: &str) -> Option<&'a Value> {
    items(object, "/status/conditions")
        .iter()
        .find(|condition| text(condition, "/type") == Some(condition_type))
}

/// Who has to let an object go before it is gone.
pub fn finalizers(object: &Value) -> Vec<&str> {
    items(object, "/metadata/finalizers")
        .iter()
        .filter_map(Value::as_str)
        .collect()
}

/// What a key of a Secret holds; `None` where it is not there, or no base64.
pub fn data(secret: &Value, key: &str) -> Option<Vec<u8>> {
    let encoded = secret.get("data")?.get(key)?.as_str()?;
    STANDARD.decode(encoded).ok()
}

/// Overwrites what a Secret holds, before its memory goes to somebody else.
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

/// The value of an annotation.
pub fn annotation<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    at(object, "/metadata/annotations")?.get(name)?.as_str()
}

/// The value of a label.
pub fn label<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    at(object, "/metadata/labels")?.get(name)?.as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pointer_leads_to_what_serde_json_finds() {
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
    fn nothing_of_a_secret_is_left_when_it_was_wiped() {
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
    fn a_key_says_that_its_object_is_in_the_remote_cluster() {
        let hooks = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "n", "name": "a"}});
        let key = ObjectKey::of(&hooks).unwrap();
        assert_eq!(key.to_string(), "ConfigMap n/a");
        let remote = key.in_cluster(InCluster::Remote);
        assert_eq!(remote.to_string(), "ConfigMap n/a in the remote cluster");
    }

    #[test]
    fn an_object_is_the_same_in_every_version_of_its_group() {
        let key = |api_version: &str, kind: &str, namespace: Option<&str>| ObjectKey {
            cluster: InCluster::Own,
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
