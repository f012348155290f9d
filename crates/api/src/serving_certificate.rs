//! ServingCertificate: keep this Service's TLS Secret issued and rotated, and its CA trusted wherever it is asked for.

#![expect(
    clippy::duplicated_attributes,
    reason = "each printcolumn has a type of its own"
)]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_object::GoDuration;

/// Which Service is served, from which Secret, and for how long.
#[derive(CustomResource, Clone, Debug, PartialEq, Deserialize, Serialize, KubeSchema)]
#[kube(
    group = "windlass.dev",
    version = "v1alpha1",
    kind = "ServingCertificate",
    plural = "servingcertificates",
    namespaced,
    shortname = "scert",
    category = "windlass",
    status = "ServingCertificateStatus",
    derive = "PartialEq",
    doc = "The serving certificate of a Service, its CA, and the trust in it.",
    printcolumn(name = "Service", type_ = "string", json_path = ".spec.serviceName"),
    printcolumn(name = "Secret", type_ = "string", json_path = ".spec.secretName"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
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
    printcolumn(name = "Not After", type_ = "string", json_path = ".status.notAfter"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Renewal",
        type_ = "string",
        json_path = ".status.renewalTime",
        priority = 1
    ),
    printcolumn(
        name = "CA",
        type_ = "integer",
        json_path = ".status.ca.current.generation",
        priority = 1
    ),
    printcolumn(
        name = "CA Renewal",
        type_ = "string",
        json_path = ".status.ca.renewalTime",
        priority = 1
    ),
    printcolumn(
        name = "Endpoints",
        type_ = "integer",
        json_path = ".status.endpoints.ready",
        priority = 1
    ),
    printcolumn(
        name = "Targets",
        type_ = "integer",
        json_path = ".status.targets.total",
        priority = 1
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].message",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("duration(self.duration) + duration(self.duration) <= duration(self.ca.duration)").message("ca.duration must be at least twice as long as duration, or CAs would be replaced faster than what they sign"))]
#[x_kube(validation = Rule::new("duration(self.duration) >= duration('10m45s')").message("duration must be at least 10m45s: a server may take a third of it to read a renewed certificate"))]
pub struct ServingCertificateSpec {
    /// The Service, in the same namespace.
    #[schemars(length(min = 1, max = 63))]
    pub service_name: String,
    /// The Secret of type `kubernetes.io/tls` that is kept, in the same namespace.
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("the Secret cannot change: pods mount it by name"))]
    pub secret_name: String,
    /// DNS names beyond the Service's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 253)))]
    pub dns_names: Vec<String>,
    /// How long a serving certificate is valid.
    #[serde(default = "default_duration")]
    pub duration: GoDuration,
    /// The CA that signs.
    #[serde(default)]
    pub ca: CaSpec,
    /// What kind of key the certificate has.
    #[serde(default)]
    pub private_key: PrivateKeySpec,
    /// How the server comes to read a new certificate.
    #[serde(default)]
    pub reload: Reload,
}

/// The CA of a ServingCertificate.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CaSpec {
    /// How long a CA signs and is trusted, counted from its first signature.
    pub duration: GoDuration,
}

/// The key of a serving certificate.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.size) || (self.algorithm == 'RSA' ? self.size in [2048, 3072, 4096] : self.size == 256)").message("size: 256 with ECDSA; 2048, 3072 or 4096 with RSA"))]
pub struct PrivateKeySpec {
    /// The algorithm.
    #[serde(default)]
    pub algorithm: PrivateKeyAlgorithm,
    /// Bits of the key; by default 256 with ECDSA and 2048 with RSA.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u32>,
}

/// Key algorithms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum PrivateKeyAlgorithm {
    /// P-256.
    #[default]
    #[serde(rename = "ECDSA")]
    Ecdsa,
    /// For clients that know nothing newer.
    #[serde(rename = "RSA")]
    Rsa,
}

/// How the server comes to read a new certificate.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Reload {
    /// The strategy.
    pub strategy: ReloadStrategy,
    /// The Deployment that serves; needed to restart a server that does not read its certificate anew.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub deployment_name: Option<String>,
}

/// What is done with a server after its Secret changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum ReloadStrategy {
    /// What is served is watched; the rollout is restarted only if it does not change.
    #[default]
    Auto,
    /// The rollout is never restarted.
    Never,
}

/// Where a rotation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum ServingCertificatePhase {
    /// The next CA is trusted everywhere and signs nothing yet.
    Stable,
    /// The next CA has signed; endpoints are coming to serve what it signed.
    Signing,
    /// Every endpoint serves what the next CA signed; targets are getting the CA after it.
    Retiring,
    /// Targets are getting a next CA that they did not know.
    Distributing,
}

/// What was found and done.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServingCertificateStatus {
    /// The generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Where the rotation stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<ServingCertificatePhase>,
    /// When the serving certificate in the Secret ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_after: Option<Time>,
    /// When the serving certificate is renewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renewal_time: Option<Time>,
    /// The CAs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<CaStatus>,
    /// The ready endpoints of the Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<EndpointsStatus>,
    /// The objects that carry the trust bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets: Option<TargetsStatus>,
    /// The value of the annotation `windlass.dev/rotate` that was carried out last: every endpoint and every target has
    /// what it asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotated: Option<String>,
    /// Ready, Trusted and Served.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// The CA that signs and the one that will.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CaStatus {
    /// Signs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<Generation>,
    /// Is trusted already and signs next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Generation>,
    /// When the next CA starts to sign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renewal_time: Option<Time>,
}

/// One CA.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Generation {
    /// Counts the CAs of a ServingCertificate from 1.
    pub generation: u32,
    /// When it ends.
    pub not_after: Time,
}

/// What the endpoints of the Service serve.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndpointsStatus {
    /// How many are ready.
    pub ready: u32,
    /// How many of them serve the certificate in the Secret.
    pub current: u32,
}

/// What the targets carry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetsStatus {
    /// How many ask for the trust bundle.
    pub total: u32,
    /// How many of them carry it.
    pub current: u32,
    /// Those that cannot get it, at most 20 of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failing: Vec<FailingTarget>,
    /// Those that somebody else has taken the trust bundle from lately, at most 20 of them. It is given back each time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contested: Vec<ContestedTarget>,
}

/// A target that cannot get the trust bundle.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailingTarget {
    /// The kind.
    pub kind: String,
    /// The name.
    pub name: String,
    /// Why.
    pub message: String,
}

/// A target that somebody else has taken the trust bundle from.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContestedTarget {
    /// The kind.
    pub kind: String,
    /// The name.
    pub name: String,
    /// Who wrote it last, as far as its managed fields tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_manager: Option<String>,
    /// How often it was given back at the least: a power of two, so that not every repair changes the status.
    pub repairs: u64,
}

// === impl CaSpec ===

impl Default for CaSpec {
    fn default() -> Self {
        Self {
            duration: default_ca_duration(),
        }
    }
}

/// How long a serving certificate is valid where nothing else is said: 90 days.
pub(super) fn default_duration() -> GoDuration {
    GoDuration::from_hours(2160)
}

/// How long a CA lives where nothing else is said: a year.
pub(super) fn default_ca_duration() -> GoDuration {
    GoDuration::from_hours(8760)
}
