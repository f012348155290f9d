//! Patches in responses.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{is_default, macros::object};
use crate::Base64Bytes;

/// The format of a patch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum PatchType {
    /// A list of operations (RFC 6902).
    JsonPatch,
    /// The changed fields (RFC 7386).
    JsonMergePatch,
    /// Another value, or none.
    Unknown(String),
}

object! {
    /// A patch of one object.
    #[schemars(extend("required" = ["patchType", "patch"]))]
    pub struct Patch {
        /// JSONPatch or JSONMergePatch.
        #[serde(skip_serializing_if = "is_default")]
        #[schemars(with = "String")]
        pub patch_type: PatchType,
        /// The content of the patch.
        #[serde(skip_serializing_if = "is_default")]
        pub patch: Base64Bytes,
    }
}

impl PatchType {
    fn as_str(&self) -> &str {
        match self {
            Self::JsonPatch => "JSONPatch",
            Self::JsonMergePatch => "JSONMergePatch",
            Self::Unknown(other) => other,
        }
    }
}

impl Default for PatchType {
    fn default() -> Self {
        Self::Unknown(String::new())
    }
}

impl From<String> for PatchType {
    fn from(written: String) -> Self {
        match &*written {
            "JSONPatch" => Self::JsonPatch,
            "JSONMergePatch" => Self::JsonMergePatch,
            _ => Self::Unknown(written),
        }
    }
}

impl From<PatchType> for String {
    fn from(patch_type: PatchType) -> Self {
        patch_type.as_str().to_owned()
    }
}

impl fmt::Display for PatchType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl Patch {
    /// Creates a patch with the operations of `patch` (RFC 6902).
    pub fn json(patch: &Value) -> Self {
        Self {
            patch_type: PatchType::JsonPatch,
            patch: Base64Bytes(patch.to_string().into_bytes()),
        }
    }

    /// Creates a patch that changes the fields of `patch` (RFC 7386).
    pub fn merge(patch: &Value) -> Self {
        Self {
            patch_type: PatchType::JsonMergePatch,
            patch: Base64Bytes(patch.to_string().into_bytes()),
        }
    }

    /// Reports whether the patch has a type or content.
    pub fn is_defined(&self) -> bool {
        !is_default(self)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_patch_is_base64_with_its_type() {
        let patch = Patch::merge(&json!({"spec": null}));
        let written = json!({"patchType": "JSONMergePatch", "patch": "eyJzcGVjIjpudWxsfQ=="});
        assert_eq!(serde_json::to_value(&patch).unwrap(), written);
        assert_eq!(serde_json::from_value::<Patch>(written).unwrap(), patch);
        assert_eq!(Patch::json(&json!([])).patch_type.to_string(), "JSONPatch");
    }

    #[test]
    fn an_empty_patch_is_not_defined() {
        assert!(!Patch::default().is_defined());
        assert_eq!(serde_json::to_value(Patch::default()).unwrap(), json!({}));
        let other: Patch = serde_json::from_value(json!({"patchType": "StrategicMerge"})).unwrap();
        assert!(other.is_defined());
        assert_eq!(other.patch_type, PatchType::Unknown("StrategicMerge".into()));
    }
}
