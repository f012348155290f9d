//! BundleDeployment: installs a bundle into a namespace.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_crd::{
    claims::Adoption,
    round_trip::ConversionException,
    storage_migration::Migration,
    upgrade_safety::{Exception, Policy},
};
use windlass_object::GoDuration;

use crate::{
    catalog_source::{CatalogSource, CatalogStatus, UpgradeApproval},
    missing_rights::MissingRights,
    revision_status::{BundleRevision, InstalledRevision, NextRevision},
    serving_certificate::{default_ca_duration, default_duration},
};

/// What to install, where, and which namespaces the operator watches.
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
    doc = "BundleDeployment installs a registry+v1 operator bundle and arms its webhooks once they are proven. Users who can create or change a BundleDeployment are effectively cluster-admin, because the bundle brings its own roles and pods. To restrict them, require a serviceAccountName with an admission policy.",
    validation = Rule::new("self.metadata.name.size() <= 63").message("metadata.name must have at most 63 characters: it is used as a label value"),
    printcolumn(name = "Installed", type_ = "string", json_path = ".status.installed.version"),
    printcolumn(name = "Next", type_ = "string", json_path = ".status.next.version"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].reason"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Namespace", type_ = "string", json_path = ".spec.namespace", priority = 1),
    printcolumn(name = "Revision", type_ = "integer", json_path = ".status.installed.revision", priority = 1),
    printcolumn(name = "Bundle", type_ = "string", json_path = ".status.installed.name", priority = 1),
    printcolumn(name = "Healthy", type_ = "boolean", json_path = ".status.installed.healthy", priority = 1),
    printcolumn(name = "Armed", type_ = "string", json_path = ".status.conditions[?(@.type==\"Armed\")].status", priority = 1),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].message", priority = 1)
)]
#[serde(rename_all = "camelCase")]
pub struct BundleDeploymentSpec {
    /// Namespace to install the operator into. It must not be the namespace of Windlass. It is created if it
    /// does not exist, and kept on removal.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    #[x_kube(validation = Rule::new("self == oldSelf").message("namespace is immutable: to move the operator, delete the BundleDeployment and create another"))]
    pub namespace: String,
    /// Namespaces that the operator watches. If empty, it watches all namespaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 256),
        inner(
            length(min = 1, max = 63),
            regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
        )
    )]
    pub watch_namespaces: Vec<String>,
    /// Name of a ServiceAccount in `namespace`. If set, the objects of the bundle are created, changed and
    /// deleted as that account, so that an install gives no rights that the account lacks. If not set, they
    /// are written with the rights of Windlass, which can grant anything. An install for which rights are
    /// missing is refused, and status.missingRights lists them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub service_account_name: Option<String>,
    /// Source of the bundle: exactly one of directory, configMaps, image and catalog.
    pub source: Source,
    /// OLM's deployment configuration: env, envFrom, volumes, volumeMounts, tolerations, resources,
    /// nodeSelector, affinity, annotations. The additional field `windlass` has `readinessProbe`, `preStop`,
    /// `rollingUpdate` and `canary`, each true by default. The first three keep webhooks available during a
    /// rollout. Without `rollingUpdate`, a Deployment has the bundle's own strategy on its first install and
    /// while no webhook calls its pods. Even so, an upgrade keeps the old pods next to the new ones until no
    /// webhook calls the old ones. With `canary`, a new revision of a bundle with webhooks is first tested in
    /// a single separate pod, before the Deployment is changed. That pod runs the operator's program
    /// alongside the installed one: disable `canary` for an operator without leader election, or both will
    /// reconcile. `replicas` of `windlass` sets the number of replicas of Deployments that serve webhooks,
    /// unless an autoscaler or `kubectl scale` has set it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub config: Option<Value>,
    /// Whether to allow a bundle that is older than the installed one and does not name it in `replaces`,
    /// `skips` or `olm.skipRange`. Going back to the installed bundle after a failed upgrade, or to a
    /// revision in status.history, is always allowed. Going back to a bundle that lacks a version in which
    /// objects are stored is never allowed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_downgrade: bool,
    /// Whether to install webhooks that block the bundle's own recovery, for example a webhook for CREATE of
    /// the pods that serve it. If all of these pods are down, new ones start only after the webhook is
    /// removed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_blocking_webhooks: bool,
    /// Whether to refuse CustomResourceDefinition changes that would break clients or stored objects.
    #[serde(default)]
    pub crd_upgrade_safety: CrdUpgradeSafety,
    /// Exceptions to crdUpgradeSafety for specific rules, CustomResourceDefinitions, versions or fields. The condition
    /// of a refused upgrade says what to list here; `windlass check --crd-upgrade` reports it in advance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub crd_upgrade_exceptions: Vec<Exception>,
    /// How upgrades are done.
    #[serde(default, skip_serializing_if = "UpgradeSettings::is_default")]
    pub upgrade: UpgradeSettings,
    /// Fields that conversion webhooks may lose or change when they convert an object to another version and
    /// back. A webhook is not armed if it loses any other field that the webhooks of the installed bundle
    /// preserve. The condition names the object and the field.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub conversion_exceptions: Vec<ConversionException>,
    /// Existing objects of the bundle to take over from their creator, such as another installer or a user.
    /// An install that would change such objects is refused unless they are listed here. Stop their other
    /// writers first, or both will keep overwriting each other. Objects of another BundleDeployment cannot be
    /// taken over before that one is deleted. Objects that were taken over belong to this BundleDeployment,
    /// and are removed with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024))]
    pub adopt: Vec<Adoption>,
    /// Who manages `spec.conversion` of the CustomResourceDefinitions. With External, Windlass creates it as
    /// in the bundle's manifests and does not claim, guard or remove it. Use External for operators that arm
    /// their conversion webhooks themselves.
    #[serde(default)]
    pub conversion: ConversionManager,
    /// Whether to interpret objects of the bundle with ResourceInterpretations,
    /// ResourceInterpreterCustomizations and the built-in rules for Kubernetes' own kinds. If so, Available
    /// waits until the objects are healthy, dependent objects are applied in order of their dependencies, and
    /// fields that the cluster has set are kept. Turn this off if a customization gets in the way.
    #[serde(default)]
    pub interpretation: ObjectInterpretation,
    /// What to do with the CustomResourceDefinitions when the BundleDeployment is deleted. Can be changed
    /// until they are deleted.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,
    /// Lifetimes of the certificates of the operator's webhooks.
    #[serde(default)]
    pub certificates: CertificateDefaults,
}

/// Source of a bundle. Set exactly one of directory, configMaps, image and catalog.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("[has(self.directory), has(self.configMaps), has(self.image), has(self.catalog)].filter(x, x).size() == 1").message("specify exactly one source: directory, configMaps, image or catalog"))]
pub struct Source {
    /// A directory that the operator can read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<DirectorySource>,
    /// ConfigMaps in the operator's own namespace that hold the parts of a .tar.gz, in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub config_maps: Option<Vec<ConfigMapName>>,
    /// An OCI image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageSource>,
    /// A channel of a file-based catalog. Windlass follows it and installs one bundle after the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog: Option<CatalogSource>,
    /// Digest that the bundle must have, as status.installed.digest shows it. A source with another digest is
    /// refused, and the installed revision is kept. If not set, a change of the source is an upgrade.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 71), regex(pattern = r"^sha256:[0-9a-f]{64}$"))]
    pub digest: Option<String>,
}

/// A directory below the operator's `--bundle-dir`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct DirectorySource {
    /// Path of the directory, relative to `--bundle-dir`.
    #[schemars(length(min = 1, max = 4096))]
    pub path: String,
}

/// Reference to a ConfigMap in the operator's own namespace.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
pub struct ConfigMapName {
    /// Name of the ConfigMap.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// An OCI image that holds a bundle.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageSource {
    /// Image reference, preferably by digest: `registry/repository@sha256:…`.
    #[serde(rename = "ref")]
    #[schemars(length(min = 1, max = 1024))]
    pub reference: String,
    /// Name of a Secret of type `kubernetes.io/dockerconfigjson` in the operator's own namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub pull_secret: Option<String>,
}

/// Whether to refuse unsafe changes to CustomResourceDefinitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum CrdUpgradeSafety {
    /// Refuse unsafe changes.
    #[default]
    Strict,
    /// Apply every change that the API server accepts.
    None,
}

/// How to upgrade.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpgradeSettings {
    /// Whether requests may fail during an upgrade. It affects Deployments that serve webhooks and whose pods
    /// exclude each other, because they use a port or the network of their node, or a volume. If false, such
    /// an upgrade is refused. If true, old pods also stop first where new pods may not find a node next to
    /// them (a required podAntiAffinity, a PersistentVolumeClaim). If true, an upgrade may also remove a
    /// server, port or path that another object in the cluster still calls.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_interruption: bool,
}

/// Who manages the conversion of CustomResourceDefinitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum ConversionManager {
    /// Windlass arms the conversion webhooks that the ClusterServiceVersion declares.
    #[default]
    Managed,
    /// The operator or another controller.
    External,
}

/// Whether to interpret the objects of a bundle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum ObjectInterpretation {
    /// Interpret objects.
    #[default]
    Enabled,
    /// Do not interpret objects. Only Deployments are checked for health, objects are applied in the order of
    /// the bundle, and all fields that the bundle sets are overwritten.
    Disabled,
}

/// What to do with CustomResourceDefinitions when their BundleDeployment is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum DeletionPolicy {
    /// Keep them and all their objects.
    #[default]
    KeepCRDs,
    /// Keep them and all their objects, but serve only the version in which objects are stored: all objects
    /// are rewritten in it first, then the conversion is removed. Clients of other versions get 404 from then
    /// on.
    KeepStoredVersion,
    /// Delete them and all their objects, while the operator still runs and can finalize the objects.
    DeleteCRDs,
}

/// Lifetimes for the ServingCertificates of a bundle.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("duration(self.duration) + duration(self.duration) <= duration(self.caDuration)").message("caDuration must be at least twice as long as duration, or CAs would be replaced faster than the certificates that they sign"))]
#[x_kube(validation = Rule::new("duration(self.duration) >= duration('10m45s')").message("duration must be at least 10m45s: a server may take a third of it to read a renewed certificate"))]
pub struct CertificateDefaults {
    /// How long a serving certificate is valid.
    #[serde(default = "default_duration")]
    pub duration: GoDuration,
    /// How long a CA signs and is trusted.
    #[serde(default = "default_ca_duration")]
    pub ca_duration: GoDuration,
}

/// Observed state.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BundleDeploymentStatus {
    /// Generation of the spec that this status reflects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The installed revision: the last one that was armed completely. It stays in place until another
    /// revision is armed completely, even if an upgrade fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installed: Option<InstalledRevision>,
    /// The revision that spec describes and that is not installed yet, and why it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<NextRevision>,
    /// Revisions that were installed earlier, the latest first. `windlass rollback` can install them again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<BundleRevision>,
    /// The next bundles in the catalog of spec.source.catalog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog: Option<CatalogStatus>,
    /// The conversion of each CustomResourceDefinition that the bundle claims.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conversions: Vec<ConversionStatus>,
    /// The admission webhooks, and the ExtensionConfigs and APIServices that the bundle contains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub webhooks: Vec<WebhookStatus>,
    /// The ServingCertificates of the bundle.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub certificates: Vec<CertificateStatus>,
    /// Storage migrations: CustomResourceDefinitions whose objects are being rewritten in a new storage version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub storage_migrations: Vec<Migration>,
    /// Rights that spec.serviceAccountName lacks to install the bundle. `windlass status NAME
    /// --missing-rights` prints them as roles and bindings to apply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing_rights: Vec<MissingRights>,
    /// Accepted: the spec can be installed. Installed: every object is applied. Available: the Deployments
    /// are available and the other objects healthy. Armed: all webhooks receive API traffic. Available and
    /// Armed describe the installed revision or, before the first install, the next one. Migrated: every
    /// object is stored in the version that the bundle stores. Progressing: Windlass will take the next step
    /// on its own. Ready: the installed revision works and matches the spec. An alert on Ready therefore
    /// covers two cases. If Available and Armed are True, the installed revision works, and only the next one
    /// is refused or waits (see its reason in `next`). Otherwise the installed revision itself is down.
    /// Paused: reconciliation is paused; absent otherwise. Stalled: Windlass has stopped until a user acts;
    /// absent otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schemas::conditions")]
    pub conditions: Vec<Condition>,
}

/// State of a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub enum WebhookState {
    /// Not in place: it receives no API traffic.
    Disarmed,
    /// In place for the first objects, but not proven yet.
    Arming,
    /// Proven, and its webhook configuration or `spec.conversion` is in place: it receives API traffic.
    Armed,
    /// Refused: another BundleDeployment holds the claim.
    Refused,
}

/// The conversion of one CustomResourceDefinition.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConversionStatus {
    /// Name of the CustomResourceDefinition.
    pub crd: String,
    /// Kind that it defines, which is unique within its group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// State of the webhook.
    pub state: WebhookState,
}

/// One admission webhook, ExtensionConfig or APIService.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebhookStatus {
    /// Name of the webhook configuration, ExtensionConfig or APIService.
    pub name: String,
    /// Type of the webhook: `ValidatingAdmissionWebhook` or `MutatingAdmissionWebhook`; or `ExtensionConfig` or `APIService`.
    #[serde(rename = "type")]
    pub webhook_type: String,
    /// State of the webhook.
    pub state: WebhookState,
}

/// One ServingCertificate of the bundle.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CertificateStatus {
    /// Name of the ServingCertificate, in `spec.namespace`.
    pub name: String,
    /// When the serving certificate expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schemas::optional_time")]
    pub not_after: Option<Time>,
    /// When the serving certificate is renewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schemas::optional_time")]
    pub renewal_time: Option<Time>,
}

impl BundleDeploymentSpec {
    /// The policy for unsafe changes of CustomResourceDefinitions.
    pub fn crd_upgrade_policy(&self) -> Policy {
        Policy {
            lenient: self.crd_upgrade_safety == CrdUpgradeSafety::None,
            exceptions: self.crd_upgrade_exceptions.clone(),
        }
    }
}

impl Source {
    /// The source without its pinned digest and approval mode, to tell whether both come from the same place.
    #[must_use]
    pub fn origin(&self) -> Self {
        let mut origin = Self {
            digest: None,
            ..self.clone()
        };
        if let Some(catalog) = &mut origin.catalog {
            catalog.approval = UpgradeApproval::default();
        }
        origin
    }
}

impl BundleDeploymentStatus {
    /// Counts the armed conversions and webhooks, and all of them.
    pub fn count_armed(&self) -> (usize, usize) {
        let conversions = self.conversions.iter().map(|conversion| conversion.state);
        let states = conversions.chain(self.webhooks.iter().map(|webhook| webhook.state));
        let armed = states.filter(|state| *state == WebhookState::Armed).count();
        (armed, self.conversions.len() + self.webhooks.len())
    }
}

impl UpgradeSettings {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for CertificateDefaults {
    fn default() -> Self {
        Self {
            duration: default_duration(),
            ca_duration: default_ca_duration(),
        }
    }
}

/// The schema of a field that accepts any object.
fn any_object(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}
