//! BundleDeployment: install this bundle into this namespace.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_crd::{
    claims::Adoption,
    storage_migration::Migration,
    upgrade_safety::{Exception, Policy},
};
use windlass_object::GoDuration;

use crate::serving_certificate::{default_ca_duration, default_duration};

/// What to install, where, and for which namespaces.
#[derive(CustomResource, Clone, Debug, PartialEq, Deserialize, Serialize, KubeSchema)]
#[kube(
    group = "windlass.dev",
    version = "v1alpha1",
    kind = "BundleDeployment",
    plural = "bundledeployments",
    shortname = "bd",
    category = "windlass",
    status = "BundleDeploymentStatus",
    derive = "PartialEq",
    doc = "A registry+v1 operator bundle that is installed, with webhooks that are armed once they are proven.",
    validation = Rule::new("self.metadata.name.size() <= 63").message("the name becomes a label value: it must have 63 characters or less"),
    printcolumn(name = "Package", type_ = "string", json_path = ".status.bundle.package"),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.bundle.version"),
    printcolumn(name = "Namespace", type_ = "string", json_path = ".spec.namespace"),
    printcolumn(name = "Armed", type_ = "string", json_path = ".status.conditions[?(@.type==\"Armed\")].status"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].reason"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Bundle", type_ = "string", json_path = ".status.bundle.name", priority = 1),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].message", priority = 1)
)]
#[serde(rename_all = "camelCase")]
pub struct BundleDeploymentSpec {
    /// The namespace that the operator runs in. It is created where it does not exist, and it stays.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    #[x_kube(validation = Rule::new("self == oldSelf").message("an installed operator cannot move: delete the BundleDeployment and create another"))]
    pub namespace: String,
    /// The namespaces that the operator watches. None named: all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 63)))]
    pub watch_namespaces: Vec<String>,
    /// Where the bundle comes from: exactly one of directory, configMaps and image.
    pub source: Source,
    /// OLM's deployment configuration: env, envFrom, volumes, volumeMounts, tolerations, resources, nodeSelector,
    /// affinity, annotations. In addition `windlass`, with `readinessProbe`, `preStop`, `rollingUpdate` and `canary`:
    /// each is true unless it is set to false. The first three keep webhooks answering while a Deployment rolls. With
    /// `canary`, a new revision of a bundle that converts is tried out in one pod of its own before the Deployment is
    /// touched. That pod runs the operator's program beside the one that is installed: an operator that does not elect
    /// a leader must turn it off, or both will reconcile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub config: Option<Value>,
    /// Whether a bundle may be installed that is older than the one that is installed, and does not name it in
    /// `replaces`, `skips` or `olm.skipRange`. Going back to the bundle that is still installed, because a newer one did
    /// not get through, is always allowed; going back to one that does not know a version in which objects are stored
    /// never is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_downgrade: bool,
    /// Whether a change of a CustomResourceDefinition that would break clients or stored objects is refused.
    #[serde(default)]
    pub crd_upgrade_safety: CrdUpgradeSafety,
    /// Exceptions from crdUpgradeSafety, for some rules, CustomResourceDefinitions, versions or fields. A refused upgrade
    /// says in its condition what to name here; `windlass check --crd-upgrade` says it beforehand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub crd_upgrade_exceptions: Vec<Exception>,
    /// Objects of the bundle that exist already and are to be taken over from whoever created them: another installer,
    /// or somebody by hand. Without it an install is refused that would change them. Take them out of the hands of the
    /// other one first, or both will write them in turns. What another BundleDeployment has installed cannot be taken
    /// over before that one is deleted. What was taken over belongs to the BundleDeployment from then on, also when it
    /// is removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024))]
    pub adopt: Vec<Adoption>,
    /// What becomes of the CustomResourceDefinitions when the BundleDeployment is deleted. May be changed until they
    /// are gone.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,
    /// How long the certificates of the operator's webhooks live.
    #[serde(default)]
    pub certificates: CertificateDefaults,
}

/// Where a bundle comes from: exactly one of the fields.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("[has(self.directory), has(self.configMaps), has(self.image)].filter(x, x).size() == 1").message("name exactly one source: directory, configMaps or image"))]
pub struct Source {
    /// A folder that the operator can read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<DirectorySource>,
    /// ConfigMaps in the operator's own namespace that hold the parts of a .tar.gz, in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub config_maps: Option<Vec<ConfigMapName>>,
    /// An OCI image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageSource>,
}

/// A folder below the operator's `--bundle-dir`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct DirectorySource {
    /// The folder, relative to `--bundle-dir`.
    #[schemars(length(min = 1, max = 4096))]
    pub path: String,
}

/// A ConfigMap in the operator's own namespace.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct ConfigMapName {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// An OCI image that holds a bundle.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageSource {
    /// The image, best by digest: `registry/repository@sha256:…`.
    #[serde(rename = "ref")]
    #[schemars(length(min = 1, max = 1024))]
    pub reference: String,
    /// A Secret of type `kubernetes.io/dockerconfigjson` in the operator's own namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub pull_secret: Option<String>,
}

/// Whether unsafe changes of CustomResourceDefinitions are refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum CrdUpgradeSafety {
    /// They are refused.
    #[default]
    Strict,
    /// Everything is applied that the API server takes.
    None,
}

/// What becomes of CustomResourceDefinitions when their BundleDeployment is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum DeletionPolicy {
    /// They stay, with every object of them.
    #[default]
    KeepCRDs,
    /// They are deleted, with every object of them, while the operator still runs and can finalize these.
    DeleteCRDs,
}

/// Lifetimes for the ServingCertificates of a bundle.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("duration(self.duration) + duration(self.duration) <= duration(self.caDuration)").message("caDuration must be at least twice as long as duration, or CAs would be replaced faster than what they sign"))]
#[x_kube(validation = Rule::new("duration(self.duration) >= duration('10m45s')").message("duration must be at least 10m45s: a server may take a third of it to read a renewed certificate"))]
pub struct CertificateDefaults {
    /// How long a serving certificate is valid.
    #[serde(default = "default_duration")]
    pub duration: GoDuration,
    /// How long a CA signs and is trusted.
    #[serde(default = "default_ca_duration")]
    pub ca_duration: GoDuration,
}

/// What was found and done.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BundleDeploymentStatus {
    /// The generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The bundle that is installed: the last one of which everything was armed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<BundleStatus>,
    /// The bundle that the source holds, while it is not installed yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installing: Option<BundleStatus>,
    /// The conversion of each CustomResourceDefinition that the bundle claims.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conversions: Vec<ConversionStatus>,
    /// The admission webhooks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub webhooks: Vec<WebhookStatus>,
    /// The ServingCertificates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub certificates: Vec<CertificateStatus>,
    /// The CustomResourceDefinitions whose objects are being rewritten because their storage version has moved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub storage_migrations: Vec<Migration>,
    /// Accepted, Installed, Available, Armed, Migrated, Progressing and Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// A bundle by what tells it apart from others.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BundleStatus {
    /// The package.
    pub package: String,
    /// The name of the ClusterServiceVersion.
    pub name: String,
    /// The version.
    pub version: String,
    /// `sha256:…` over all files.
    pub digest: String,
}

/// How far a webhook is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum WebhookState {
    /// API traffic does not go to it.
    Disarmed,
    /// It is in place for the first objects to come, but not proven yet.
    Arming,
    /// Proven, and API traffic goes to it.
    Armed,
    /// Another BundleDeployment holds the claim.
    Refused,
}

/// The conversion of one CustomResourceDefinition.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConversionStatus {
    /// The CustomResourceDefinition.
    pub crd: String,
    /// The kind that it defines, of which a group has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// How far it is.
    pub state: WebhookState,
}

/// One admission webhook.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookStatus {
    /// The webhook configuration.
    pub name: String,
    /// `ValidatingAdmissionWebhook` or `MutatingAdmissionWebhook`.
    #[serde(rename = "type")]
    pub webhook_type: String,
    /// How far it is.
    pub state: WebhookState,
}

/// One ServingCertificate of the bundle.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CertificateStatus {
    /// Its name, in the namespace of the install.
    pub name: String,
    /// When the serving certificate ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_after: Option<Time>,
    /// When the serving certificate is renewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renewal_time: Option<Time>,
}

// === impl BundleDeploymentSpec ===

impl BundleDeploymentSpec {
    /// What becomes of unsafe changes of CustomResourceDefinitions.
    pub fn crd_upgrade_policy(&self) -> Policy {
        Policy {
            lenient: self.crd_upgrade_safety == CrdUpgradeSafety::None,
            exceptions: self.crd_upgrade_exceptions.clone(),
        }
    }
}

// === impl CertificateDefaults ===

impl Default for CertificateDefaults {
    fn default() -> Self {
        Self {
            duration: default_duration(),
            ca_duration: default_ca_duration(),
        }
    }
}

/// The schema of a field that takes any object as it is.
fn any_object(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}
