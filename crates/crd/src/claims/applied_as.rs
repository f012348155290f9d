//! An annotation with the owner and the identity of an applied object, which distinguishes it from copies.

use std::fmt;

use serde_json::Value;
use windlass_object::{ObjectKey, names, object};

/// The value of [`names::APPLIED_AS`]. The API version is left out because it does not identify an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedAs {
    /// The uid of the BundleDeployment.
    pub uid: String,
    /// The kind with its group, `Deployment.apps`.
    kind: String,
    /// The namespace; empty if there is none.
    namespace: String,
    name: String,
}

impl AppliedAs {
    /// Returns the annotation of an object that is applied for the BundleDeployment with `uid`.
    pub fn new(uid: &str, key: &ObjectKey) -> Self {
        Self {
            uid: uid.to_owned(),
            kind: match key.group() {
                "" => key.kind.clone(),
                group => format!("{}.{group}", key.kind),
            },
            namespace: key.namespace.clone().unwrap_or_default(),
            name: key.name.clone(),
        }
    }

    /// Parses the annotation of an object. A malformed value matches no object.
    pub fn from_object(object: &Value) -> Option<Self> {
        let mark = object::annotation(object, names::APPLIED_AS)?;
        let mut parts = mark.split('/').map(str::to_owned);
        let mut part = || parts.next().unwrap_or_default();
        Some(Self {
            uid: part(),
            kind: part(),
            namespace: part(),
            name: part(),
        })
    }

    /// Reports whether `object` is the applied object rather than a copy.
    pub fn names(&self, object: &Value) -> bool {
        ObjectKey::from_object(object).is_some_and(|key| Self::new(&self.uid, &key) == *self)
    }
}

impl fmt::Display for AppliedAs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            uid,
            kind,
            namespace,
            name,
        } = self;
        // No part contains a slash: kinds, groups and namespaces are DNS names, and other names are path
        // segments.
        write!(f, "{uid}/{kind}/{namespace}/{name}")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn object(api_version: &str, kind: &str, namespace: Option<&str>, name: &str) -> Value {
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"namespace": namespace, "name": name}})
    }

    #[test]
    fn a_mark_names_one_object_in_every_version_and_no_copy_of_it() {
        let original = object("apps/v1", "Deployment", Some("n"), "a");
        let mark = AppliedAs::new("u", &ObjectKey::from_object(&original).unwrap());
        assert_eq!(mark.to_string(), "u/Deployment.apps/n/a");
        for (object, expected) in [
            (original, true),
            (object("apps/v1beta1", "Deployment", Some("n"), "a"), true),
            (object("apps/v1", "Deployment", Some("m"), "a"), false),
            (object("apps/v1", "Deployment", Some("n"), "b"), false),
            (object("v1", "Service", Some("n"), "a"), false),
            (object("extensions/v1", "Deployment", Some("n"), "a"), false),
            (object("apps/v1", "Deployment", None, "a"), false),
        ] {
            assert_eq!(mark.names(&object), expected, "{object}");
        }
    }

    #[test]
    fn a_mark_that_cannot_be_read_names_nothing() {
        for mark in ["", "u", "u/ConfigMap", "u/ConfigMap/n", "/ConfigMap/n/b"] {
            let mut marked = object("v1", "ConfigMap", Some("n"), "a");
            marked["metadata"]["annotations"][names::APPLIED_AS] = mark.into();
            assert!(!AppliedAs::from_object(&marked).unwrap().names(&marked), "{mark}");
        }
        assert_eq!(
            AppliedAs::from_object(&object("v1", "ConfigMap", None, "a")),
            None
        );
    }

    proptest! {
        #[test]
        fn a_mark_is_read_as_it_was_written(
            uid in "[0-9a-f-]{1,8}", kind in "[A-Z][a-z]{0,5}", group in "([a-z]{1,5}\\.[a-z]{1,5}/)?",
            namespace in prop::option::of("[a-z]{1,5}"), name in "[a-z][a-z.:-]{0,8}",
        ) {
            let mut marked = object(&format!("{group}v1"), &kind, namespace.as_deref(), &name);
            let mark = AppliedAs::new(&uid, &ObjectKey::from_object(&marked).unwrap());
            marked["metadata"]["annotations"][names::APPLIED_AS] = mark.to_string().into();
            prop_assert_eq!(AppliedAs::from_object(&marked).unwrap(), mark.clone());
            prop_assert!(mark.names(&marked));
        }
    }
}
