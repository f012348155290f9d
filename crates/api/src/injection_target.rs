//! InjectionTarget: a kind that contains CA bundles, in addition to the built-in ones.

#![expect(
    clippy::duplicated_attributes,
    reason = "each printcolumn has a type of its own"
)]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A kind and its fields that contain CA bundles.
#[derive(CustomResource, Clone, Debug, PartialEq, Deserialize, Serialize, KubeSchema)]
#[kube(
    group = "windlass.dev",
    version = "v1alpha1",
    kind = "InjectionTarget",
    plural = "injectiontargets",
    category = "windlass",
    status = "InjectionTargetStatus",
    derive = "PartialEq",
    doc = "InjectionTarget lets objects of a kind request CA bundles by the annotations of Windlass, as webhook configurations do.",
    printcolumn(name = "Group", type_ = "string", json_path = ".spec.group"),
    printcolumn(name = "Kind", type_ = "string", json_path = ".spec.kind"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason"
    ),
    printcolumn(name = "Targets", type_ = "integer", json_path = ".status.targets"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].message",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
pub struct InjectionTargetSpec {
    /// API group of the kind; empty for the core group.
    #[serde(default)]
    #[schemars(
        length(max = 253),
        regex(pattern = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$")
    )]
    pub group: String,
    /// Version of the API in which objects are watched and patched.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub version: String,
    /// Kind of the objects, for example Gateway.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$")
    )]
    pub kind: String,
    /// Plural name of the resource, as URLs and roles use it, for example gateways.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub plural: String,
    /// Fields that contain a CA bundle.
    #[schemars(length(min = 1, max = 16))]
    pub paths: Vec<CaBundlePath>,
    /// How programs read the CA bundles. This determines how long after a write a CA bundle counts as
    /// trusted.
    #[serde(default)]
    pub readers: CaBundleReaders,
}

/// A field that contains a CA bundle.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CaBundlePath {
    /// Path to the field: names, each after a /, and * for each item of a list, as in /spec/caBundle or
    /// /webhooks/*/clientConfig/caBundle. The parent of the field must exist. If the parent also has a
    /// service or url, the field gets only the CA bundle of that server.
    #[schemars(length(min = 2, max = 512))]
    pub path: String,
    /// Encoding of the CA bundle.
    #[serde(default)]
    pub encoding: CaBundleEncoding,
}

/// Encoding of a CA bundle in a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum CaBundleEncoding {
    /// PEM in base64, as in fields of `format: byte`.
    #[default]
    Base64,
    /// PEM.
    #[serde(rename = "PEM")]
    Pem,
}

/// How programs read CA bundles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum CaBundleReaders {
    /// Programs watch the objects.
    #[default]
    Watch,
    /// Programs read files that are mounted into their pods.
    Files,
}

/// Observed state.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InjectionTargetStatus {
    /// Generation of the spec that this status reflects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Number of objects that request a CA bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets: Option<i64>,
    /// Roles, as YAML, that grant Windlass the rights for this kind. Apply them with kubectl.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rights: Option<String>,
    /// Accepted: the spec is valid. Ready: Windlass watches the objects of the kind. Stalled: the
    /// InjectionTarget is rejected; absent otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schemas::conditions")]
    pub conditions: Vec<Condition>,
}
