//! The format of case files.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::api::{HttpMethod, schemas::any};

/// A case file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["policies", "cases"]))]
pub(super) struct RawCases {
    /// File names, or policies.
    #[schemars(length(min = 1), schema_with = "list_of_any")]
    pub(super) policies: Vec<Value>,
    /// Objects by name.
    #[schemars(schema_with = "map_of_objects")]
    pub(super) objects: BTreeMap<String, Value>,
    /// Data for all cases.
    pub(super) data: RawData,
    /// The test cases of the file.
    #[schemars(length(min = 1))]
    pub(super) cases: Vec<RawCase>,
}

/// Objects in a cluster, and responses of servers.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawData {
    /// Objects in the cluster.
    #[schemars(schema_with = "list_of_objects")]
    pub(super) objects: Vec<Value>,
    /// Responses of servers.
    pub(super) responses: Vec<RawResponse>,
}

/// The response of a server: a body, or an error.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawResponse {
    /// The full URL.
    #[schemars(length(min = 1))]
    pub(super) url: String,
    /// GET or POST. Defaults to GET.
    pub(super) method: Option<HttpMethod>,
    /// Any JSON.
    #[serde(default)]
    #[schemars(schema_with = "any")]
    pub(super) body: Option<Value>,
    /// The error of the request.
    pub(super) error: Option<String>,
}

/// A test case: a request, and its expected outcome.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("required" = ["name", "object"]))]
pub(super) struct RawCase {
    /// The tested behaviour; unique in the file.
    #[schemars(length(min = 1))]
    pub(super) name: String,
    /// Defaults to UPDATE with `oldObject`, else to CREATE.
    pub(super) operation: Option<RawOperation>,
    /// The object, or its name.
    #[schemars(schema_with = "any")]
    pub(super) object: Value,
    /// A merge patch of the object.
    #[schemars(schema_with = "map_of_any")]
    pub(super) change: Option<Value>,
    /// The previous object, or its name.
    #[schemars(schema_with = "any")]
    pub(super) old_object: Option<Value>,
    /// A merge patch of the previous object.
    #[schemars(schema_with = "map_of_any")]
    pub(super) old_change: Option<Value>,
    /// The user of the request.
    pub(super) user: RawUser,
    /// The Namespace, or its name among the objects.
    #[schemars(schema_with = "any")]
    pub(super) namespace_object: Option<Value>,
    /// Whether the request is a dry run.
    pub(super) dry_run: bool,
    /// Data for this case.
    pub(super) data: RawData,
    /// The expected outcome.
    pub(super) expect: RawExpectation,
}

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[schemars(inline)]
pub(super) enum RawOperation {
    /// Creates an object.
    Create,
    /// Updates an object.
    Update,
    /// Deletes an object.
    Delete,
}

/// The user of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawUser {
    /// The username.
    pub(super) name: String,
    /// Groups of the user.
    pub(super) groups: Vec<String>,
}

/// The expected outcome.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawExpectation {
    /// The complete resulting object, or its name.
    #[schemars(schema_with = "any")]
    pub(super) object: Option<Value>,
    /// The result, as a merge patch of the object.
    #[schemars(schema_with = "map_of_any")]
    pub(super) change: Option<Value>,
    /// The JSON patch in the response.
    #[schemars(schema_with = "list_of_objects")]
    pub(super) patch: Option<Vec<Value>>,
    /// The message of the refusal.
    #[schemars(length(min = 1))]
    pub(super) denied: Option<String>,
    /// A part of the failure for which the request is refused.
    #[schemars(length(min = 1))]
    pub(super) error: Option<String>,
    /// The warnings, each in full.
    pub(super) warnings: Vec<String>,
    /// The reported messages, each in full.
    pub(super) audits: Vec<String>,
    /// A part of each ignored failure.
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
