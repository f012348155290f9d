//! Files of cases as they are written.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::api::{HttpMethod, schemas::any};

/// A file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["policies", "cases"]))]
pub(super) struct WrittenCases {
    /// Names of files, or policies.
    #[schemars(length(min = 1), schema_with = "list_of_any")]
    pub(super) policies: Vec<Value>,
    /// Objects by name.
    #[schemars(schema_with = "map_of_objects")]
    pub(super) objects: BTreeMap<String, Value>,
    /// What is known beside.
    pub(super) data: WrittenData,
    /// The cases.
    #[schemars(length(min = 1))]
    pub(super) cases: Vec<WrittenCase>,
}

/// What is known of a cluster and of servers.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct WrittenData {
    /// Objects.
    #[schemars(schema_with = "list_of_objects")]
    pub(super) objects: Vec<Value>,
    /// Answers.
    pub(super) responses: Vec<WrittenResponse>,
}

/// What a server answers: a body, or an error.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct WrittenResponse {
    /// The whole URL.
    #[schemars(length(min = 1))]
    pub(super) url: String,
    /// GET or POST; left out for GET.
    pub(super) method: Option<HttpMethod>,
    /// Any JSON.
    #[serde(default)]
    #[schemars(schema_with = "any")]
    pub(super) body: Option<Value>,
    /// Why there is no answer.
    pub(super) error: Option<String>,
}

/// A case.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["name", "object"]))]
pub(super) struct WrittenCase {
    /// Its name.
    #[schemars(length(min = 1))]
    pub(super) name: String,
    /// What is done.
    pub(super) operation: Option<WrittenOperation>,
    /// The object, or its name.
    #[schemars(schema_with = "any")]
    pub(super) object: Value,
    /// A merge patch of it.
    #[schemars(schema_with = "map_of_any")]
    pub(super) change: Option<Value>,
    /// The object as it was, or its name.
    #[schemars(schema_with = "any")]
    pub(super) old_object: Option<Value>,
    /// A merge patch of it.
    #[schemars(schema_with = "map_of_any")]
    pub(super) old_change: Option<Value>,
    /// Who asks.
    pub(super) user: WrittenUser,
    /// The Namespace, or its name among the objects.
    #[schemars(schema_with = "any")]
    pub(super) namespace_object: Option<Value>,
    /// Whether nothing is stored.
    pub(super) dry_run: bool,
    /// What is known for this case.
    pub(super) data: WrittenData,
    /// What is expected.
    pub(super) expect: WrittenExpectation,
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[schemars(inline)]
pub(super) enum WrittenOperation {
    /// An object is created.
    Create,
    /// An object is changed.
    Update,
    /// An object is deleted.
    Delete,
}

/// Who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct WrittenUser {
    /// The name.
    pub(super) name: String,
    /// The groups.
    pub(super) groups: Vec<String>,
}

/// What is expected.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct WrittenExpectation {
    /// The object, or its name.
    #[schemars(schema_with = "any")]
    pub(super) object: Option<Value>,
    /// A merge patch.
    #[schemars(schema_with = "map_of_any")]
    pub(super) change: Option<Value>,
    /// A JSON patch.
    #[schemars(schema_with = "list_of_objects")]
    pub(super) patch: Option<Vec<Value>>,
    /// A message.
    #[schemars(length(min = 1))]
    pub(super) denied: Option<String>,
    /// A part of a message.
    #[schemars(length(min = 1))]
    pub(super) error: Option<String>,
    /// Warnings.
    pub(super) warnings: Vec<String>,
    /// What is reported.
    pub(super) audits: Vec<String>,
    /// Parts of messages.
    pub(super) ignored: Vec<String>,
}

fn map_of_any(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

fn map_of_objects(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "object", "additionalProperties": map_of_any(generator)})
}

fn list_of_objects(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "array", "items": map_of_any(generator)})
}

fn list_of_any(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "array", "items": any(generator)})
}
