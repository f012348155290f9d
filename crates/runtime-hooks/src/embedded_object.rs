//! Kubernetes objects in requests and responses.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

/// A Kubernetes object of any kind and version, unchanged: the versions of objects differ within one version
/// of a hook.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EmbeddedObject(
    /// The fields.
    pub Map<String, Value>,
);

impl EmbeddedObject {
    /// Decodes the object as `T`.
    ///
    /// # Errors
    ///
    /// When a field is invalid for `T`.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        T::deserialize(Value::Object(self.0.clone()))
    }

    /// `metadata.namespace`.
    pub fn namespace(&self) -> Option<&str> {
        self.metadata("namespace")
    }

    /// `metadata.name`.
    pub fn name(&self) -> Option<&str> {
        self.metadata("name")
    }

    fn metadata(&self, field: &str) -> Option<&str> {
        self.0.get("metadata")?.get(field)?.as_str()
    }
}

impl From<Map<String, Value>> for EmbeddedObject {
    fn from(fields: Map<String, Value>) -> Self {
        Self(fields)
    }
}

impl JsonSchema for EmbeddedObject {
    fn schema_name() -> Cow<'static, str> {
        "EmbeddedObject".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
    }

    fn inline_schema() -> bool {
        true
    }
}
