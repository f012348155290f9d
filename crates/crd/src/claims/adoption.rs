//! Existing objects that a BundleDeployment may take over.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;
use windlass_object::object;

/// An existing object of the bundle to take over from its current owner.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Adoption {
    /// Kind of the object, for example `CustomResourceDefinition`.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// Name of the object.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// The text is not `KIND/NAME`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("must be KIND/NAME, for example CustomResourceDefinition/widgets.example.com")]
pub struct ParseAdoptionError;

impl Adoption {
    /// Reports whether this is the kind and name of `object`.
    pub fn names(&self, object: &Value) -> bool {
        object::text(object, "/kind") == Some(&self.kind)
            && object::text(object, "/metadata/name") == Some(&self.name)
    }
}

impl fmt::Display for Adoption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}

impl FromStr for Adoption {
    type Err = ParseAdoptionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('/') {
            Some((kind, name)) if !kind.is_empty() && !name.is_empty() && !name.contains('/') => Ok(Self {
                kind: kind.to_owned(),
                name: name.to_owned(),
            }),
            _ => Err(ParseAdoptionError),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_adoption_names_one_object_by_kind_and_name() {
        let adoption: Adoption = "ClusterRole/system:reader".parse().unwrap();
        assert_eq!(adoption.to_string(), "ClusterRole/system:reader");
        let object = |kind: &str, name: &str| json!({"kind": kind, "metadata": {"name": name}});
        assert!(adoption.names(&object("ClusterRole", "system:reader")));
        assert!(!adoption.names(&object("Role", "system:reader")));
        assert!(!adoption.names(&object("ClusterRole", "system")));
        for text in ["", "/", "ClusterRole", "ClusterRole/", "/name", "a/b/c"] {
            assert_eq!(text.parse::<Adoption>(), Err(ParseAdoptionError), "{text}");
        }
    }
}
