//! ServingCertificate: a rotated certificate for a Service, whose CA is injected into the targets that
//! request it.

#![expect(
    clippy::duplicated_attributes,
    reason = "each printcolumn has a type of its own"
)]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_object::GoDuration;

/// The Service, the Secret for its certificate, and the lifetimes.
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
    doc = "ServingCertificate keeps the serving certificate of a Service issued and rotated, and its CA trusted by every target that requests it.",
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
#[x_kube(validation = Rule::new("duration(self.duration) + duration(self.duration) <= duration(self.ca.duration)").message("ca.duration must be at least twice as long as duration, or CAs would be replaced faster than the certificates that they sign"))]
#[x_kube(validation = Rule::new("duration(self.duration) >= duration('10m45s')").message("duration must be at least 10m45s: a server may take a third of it to read a renewed certificate"))]
pub struct ServingCertificateSpec {
    /// Name of the Service, in the same namespace.
    #[schemars(length(min = 1, max = 63))]
    pub service_name: String,
    /// Name of the Secret of type `kubernetes.io/tls` for the certificate, in the same namespace.
    #[schemars(length(min = 1, max = 253), regex(pattern = crate::schemas::SUBDOMAIN))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("secretName is immutable: pods mount the Secret by name"))]
    pub secret_name: String,
    /// DNS names in addition to those of the Service.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 253)))]
    pub dns_names: Vec<String>,
    /// How long a serving certificate is valid.
    #[serde(default = "default_duration")]
    pub duration: GoDuration,
    /// The signing CA.
    #[serde(default)]
    pub ca: CaSpec,
    /// Private key of the certificate.
    #[serde(default)]
    pub private_key: PrivateKeySpec,
    /// How the server picks up a renewed certificate.
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

/// Private key of a serving certificate.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.size) || (self.algorithm == 'RSA' ? self.size in [2048, 3072, 4096] : self.size == 256)").message("size must be 256 with ECDSA, or 2048, 3072 or 4096 with RSA"))]
pub struct PrivateKeySpec {
    /// Key algorithm.
    #[serde(default)]
    pub algorithm: PrivateKeyAlgorithm,
    /// Key size in bits. Defaults to 256 with ECDSA and to 2048 with RSA.
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
    /// RSA, for clients that do not support ECDSA.
    #[serde(rename = "RSA")]
    Rsa,
}

/// How the server picks up a renewed certificate.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Reload {
    /// Reload strategy.
    pub strategy: ReloadStrategy,
    /// Name of the Deployment to restart. If not set, the controller of the Service's pods is restarted: a
    /// Deployment, StatefulSet or DaemonSet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = crate::schemas::SUBDOMAIN))]
    pub deployment_name: Option<String>,
}

/// What to do with a server after its Secret has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum ReloadStrategy {
    /// Watch the served certificate, and restart the workload only if the certificate does not change.
    #[default]
    Auto,
    /// Never restart the workload.
    Never,
}

/// Phase of a rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum ServingCertificatePhase {
    /// The next CA is trusted everywhere and signs nothing yet.
    Stable,
    /// The next CA has signed a certificate; endpoints are switching to it.
    Signing,
    /// Every endpoint serves a certificate of the next CA; targets are being updated with the CA after it.
    Retiring,
    /// Targets are being updated with a new next CA.
    Distributing,
}

/// Observed state.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServingCertificateStatus {
    /// Generation of the spec that this status reflects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Namespace of the Windlass installation that manages this certificate. Other installations ignore it
    /// while that one runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator_namespace: Option<String>,
    /// Phase of the rotation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<ServingCertificatePhase>,
    /// When the serving certificate in the Secret expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schemas::optional_time")]
    pub not_after: Option<Time>,
    /// When the serving certificate is renewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schemas::optional_time")]
    pub renewal_time: Option<Time>,
    /// The CAs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<CaStatus>,
    /// The ready endpoints of the Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<EndpointsStatus>,
    /// The targets that contain the trust bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets: Option<TargetsStatus>,
    /// Last value of the annotation `windlass.dev/rotate` whose rotation is complete at every endpoint and
    /// target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotated: Option<String>,
    /// Ready, Trusted and Served. ClockSynchronized and Exclusive appear only if there was a problem with
    /// them. Stalled: the certificate waits until a user acts; absent otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schemas::conditions")]
    pub conditions: Vec<Condition>,
}

/// The current and the next CA.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CaStatus {
    /// The CA that signs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<Generation>,
    /// The CA that signs next, which targets already trust.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Generation>,
    /// When the next CA starts to sign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schemas::optional_time")]
    pub renewal_time: Option<Time>,
}

/// One CA.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Generation {
    /// Number of the CA, counted from 1 within a ServingCertificate.
    pub generation: u32,
    /// When the CA expires.
    #[schemars(schema_with = "crate::schemas::time")]
    pub not_after: Time,
}

/// The endpoints of the Service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EndpointsStatus {
    /// Number of ready endpoints.
    pub ready: u32,
    /// Number of ready endpoints that serve the certificate in the Secret.
    pub current: u32,
}

/// The targets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetsStatus {
    /// Number of targets that request the trust bundle.
    pub total: u32,
    /// Number of targets that contain the current trust bundle.
    pub current: u32,
    /// Targets that Windlass failed to update with the trust bundle, at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failing: Vec<FailingTarget>,
    /// Targets whose trust bundle another client has recently overwritten, at most 20. Windlass restores it
    /// each time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contested: Vec<ContestedTarget>,
}

/// A target that Windlass failed to update with the trust bundle.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailingTarget {
    /// Kind of the target.
    pub kind: String,
    /// Name of the target.
    pub name: String,
    /// Why the update failed.
    pub message: String,
}

/// A target whose trust bundle another client has overwritten.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContestedTarget {
    /// Kind of the target.
    pub kind: String,
    /// Name of the target.
    pub name: String,
    /// Field manager of the last write, if its managed fields name one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_manager: Option<String>,
    /// Lower bound of the number of restores: a power of two, so that not every restore changes the status.
    pub repairs: u64,
}

impl Default for CaSpec {
    fn default() -> Self {
        Self {
            duration: default_ca_duration(),
        }
    }
}

/// Default lifetime of a serving certificate: 90 days.
pub(super) fn default_duration() -> GoDuration {
    GoDuration::from_hours(2160)
}

/// Default lifetime of a CA: one year.
pub(super) fn default_ca_duration() -> GoDuration {
    GoDuration::from_hours(8760)
}
