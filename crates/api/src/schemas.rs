//! Schemas of Kubernetes' own types. The derived ones of k8s-openapi would add a fifth to its build time, as
//! it derives them for every type.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

/// Pattern of an object name that is a DNS subdomain (RFC 1123).
pub(crate) const SUBDOMAIN: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";

/// A condition of a resource (`meta/v1` Condition).
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
struct Condition {
    /// Type of the condition, in CamelCase.
    #[serde(rename = "type")]
    condition_type: String,
    /// Status of the condition: True, False or Unknown.
    status: String,
    /// Reason of the status, for programs, in CamelCase.
    reason: String,
    /// Message for people: the state and what to do next.
    message: String,
    /// Generation of the spec that the condition reflects.
    observed_generation: Option<i64>,
    /// When the status last changed.
    #[schemars(schema_with = "time")]
    last_transition_time: String,
}

/// A time (`meta/v1` Time).
pub(crate) fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time" })
}

/// A time that can be null.
pub(crate) fn optional_time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time", "nullable": true })
}

/// A list of conditions, keyed by type.
pub(crate) fn conditions(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": generator.subschema_for::<Condition>(),
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    })
}
