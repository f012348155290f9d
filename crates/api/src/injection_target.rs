//! InjectionTarget: a kind that carries CA bundles, beside those that Windlass knows by itself.

#![expect(
    clippy::duplicated_attributes,
    reason = "each printcolumn has a type of its own"
)]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which kind carries CA bundles, and where.
#[derive(CustomResource, Clone, Debug, PartialEq, Deserialize, Serialize, KubeSchema)]
#[kube(
    group = "windlass.dev",
    version = "v1alpha1",
    kind = "InjectionTarget",
    plural = "injectiontargets",
    category = "windlass",
    status = "InjectionTargetStatus",
    derive = "PartialEq",
    doc = "InjectionTarget lets objects of a kind ask for CA bundles by the annotations of Windlass, as webhook configurations do.",
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
    /// Resource, as URLs and roles name it, for example gateways.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub plural: String,
    /// Fields that hold a CA bundle.
    #[schemars(length(min = 1, max = 16))]
    pub paths: Vec<CaBundlePath>,
    /// Who reads the CA bundles: how long after a write they are trusted.
    #[serde(default)]
    pub readers: CaBundleReaders,
}

/// A field that holds a CA bundle.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CaBundlePath {
    /// Names of fields after a / each; * stands for each item of a list: /spec/caBundle, /webhooks/*/clientConfig/caBundle. What
    /// holds the field must be there. Where it has a service or url beside the field, it gets the CA bundle of that server only.
    #[schemars(length(min = 2, max = 512))]
    pub path: String,
    /// How the field holds it.
    #[serde(default)]
    pub encoding: CaBundleEncoding,
}

/// How a field holds a CA bundle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum CaBundleEncoding {
    /// PEM in base64, as fields of type `format: byte` do.
    #[default]
    Base64,
    /// PEM.
    #[serde(rename = "PEM")]
    Pem,
}

/// Who reads CA bundles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum CaBundleReaders {
    /// Programs that watch the objects.
    #[default]
    Watch,
    /// Programs that get them as files, through something that pods mount.
    Files,
}

/// What was seen of the kind.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InjectionTargetStatus {
    /// Generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Number of objects that ask for a CA bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets: Option<i64>,
    /// YAML that grants the rights that Windlass needs for the kind: apply it with kubectl.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rights: Option<String>,
    /// Accepted: the spec makes sense. Ready: the objects of the kind are seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schemas::conditions")]
    pub conditions: Vec<Condition>,
}
