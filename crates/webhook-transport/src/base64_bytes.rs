//! Bytes that are base64 in JSON, like Go's `[]byte`.

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// Bytes that serialize to base64.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Base64Bytes(
    /// The decoded bytes.
    pub Vec<u8>,
);

impl From<Vec<u8>> for Base64Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl Serialize for Base64Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Base64Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut text = String::deserialize(deserializer)?;
        // Go's decoder skips line breaks.
        text.retain(|letter| !matches!(letter, '\r' | '\n'));
        STANDARD.decode(text).map(Self).map_err(D::Error::custom)
    }
}

impl JsonSchema for Base64Bytes {
    fn schema_name() -> Cow<'static, str> {
        "Base64Bytes".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "byte" })
    }

    fn inline_schema() -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_base64() {
        let bytes = Base64Bytes(b"[]".to_vec());
        assert_eq!(serde_json::to_string(&bytes).unwrap(), "\"W10=\"");
        assert_eq!(serde_json::from_str::<Base64Bytes>("\"W1\\n0=\"").unwrap(), bytes);
        assert!(serde_json::from_str::<Base64Bytes>("\"[]\"").is_err());
    }
}
