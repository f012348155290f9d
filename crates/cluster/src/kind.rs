//! Kinds of objects, and their REST resources.

use std::{borrow::Cow, collections::HashMap, fmt};

use kube::discovery::ApiResource;
use parking_lot::RwLock;
use serde_json::Value;
use windlass_object::{InCluster, ObjectKey, object};
use windlass_trust::injection::{KINDS, TargetKind};

/// A kind in one version of its group, in one of the clusters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind {
    /// The cluster that has the objects.
    pub cluster: InCluster,
    /// `group/version`, or only the version for the core group.
    pub api_version: Cow<'static, str>,
    /// For example `Deployment`.
    pub kind: Cow<'static, str>,
}

/// The REST resource of a kind.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ServedKind {
    pub(super) resource: ApiResource,
    pub(super) namespaced: bool,
}

/// Cached discovery of the group versions that were requested so far.
#[derive(Debug, Default)]
pub(super) struct Resources {
    known: RwLock<HashMap<Kind, ServedKind>>,
}

/// The kinds that Windlass reads or writes itself. Kinds that only have a CA bundle are in [`KINDS`].
pub mod kinds {
    use super::Kind;

    /// Namespaces.
    pub const NAMESPACE: Kind = Kind::new("v1", "Namespace");
    /// ConfigMaps.
    pub const CONFIG_MAP: Kind = Kind::new("v1", "ConfigMap");
    /// Secrets.
    pub const SECRET: Kind = Kind::new("v1", "Secret");
    /// Services.
    pub const SERVICE: Kind = Kind::new("v1", "Service");
    /// Pods.
    pub const POD: Kind = Kind::new("v1", "Pod");
    /// EndpointSlices.
    pub const ENDPOINT_SLICE: Kind = Kind::new("discovery.k8s.io/v1", "EndpointSlice");
    /// Deployments.
    pub const DEPLOYMENT: Kind = Kind::new("apps/v1", "Deployment");
    /// Events.
    pub const EVENT: Kind = Kind::new("events.k8s.io/v1", "Event");
    /// ReplicaSets.
    pub const REPLICA_SET: Kind = Kind::new("apps/v1", "ReplicaSet");
    /// StatefulSets.
    pub const STATEFUL_SET: Kind = Kind::new("apps/v1", "StatefulSet");
    /// DaemonSets.
    pub const DAEMON_SET: Kind = Kind::new("apps/v1", "DaemonSet");
    /// Leases.
    pub const LEASE: Kind = Kind::new("coordination.k8s.io/v1", "Lease");
    /// CustomResourceDefinitions.
    pub const CUSTOM_RESOURCE_DEFINITION: Kind =
        Kind::new("apiextensions.k8s.io/v1", "CustomResourceDefinition");
    /// ValidatingWebhookConfigurations.
    pub const VALIDATING_WEBHOOK_CONFIGURATION: Kind = Kind::new(
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
    );
    /// MutatingWebhookConfigurations.
    pub const MUTATING_WEBHOOK_CONFIGURATION: Kind =
        Kind::new("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration");
    /// APIServices.
    pub const API_SERVICE: Kind = Kind::new("apiregistration.k8s.io/v1", "APIService");
    /// The webhook configurations and APIServices.
    pub const CALLERS: [Kind; 4] = [
        CUSTOM_RESOURCE_DEFINITION,
        VALIDATING_WEBHOOK_CONFIGURATION,
        MUTATING_WEBHOOK_CONFIGURATION,
        API_SERVICE,
    ];
    /// ExtensionConfigs of Cluster API.
    pub const EXTENSION_CONFIG: Kind = Kind::new("runtime.cluster.x-k8s.io/v1beta2", "ExtensionConfig");
    /// BundleDeployments.
    pub const BUNDLE_DEPLOYMENT: Kind = Kind::new(windlass_object::names::API_VERSION, "BundleDeployment");
    /// ServingCertificates.
    pub const SERVING_CERTIFICATE: Kind =
        Kind::new(windlass_object::names::API_VERSION, "ServingCertificate");
    /// Certificates of cert-manager.
    pub const CERTIFICATE: Kind =
        Kind::new(windlass_object::ca_injectors::CERT_MANAGER_VERSION, "Certificate");
    /// Karmada's customizations of how objects are interpreted.
    pub const RESOURCE_INTERPRETER_CUSTOMIZATION: Kind =
        Kind::new("config.karmada.io/v1alpha1", "ResourceInterpreterCustomization");
    /// Karmada's configurations of webhooks that interpret objects.
    pub const RESOURCE_INTERPRETER_WEBHOOK_CONFIGURATION: Kind = Kind::new(
        "config.karmada.io/v1alpha1",
        "ResourceInterpreterWebhookConfiguration",
    );
    /// The kinds of Windlass.
    pub const RESOURCE_INTERPRETATION: Kind =
        Kind::new("interpretation.windlass.dev/v1alpha1", "ResourceInterpretation");
    /// Policies that override objects of all namespaces.
    pub const CLUSTER_OVERRIDE_POLICY: Kind =
        Kind::new("policy.kcloudlabs.io/v1alpha1", "ClusterOverridePolicy");
    /// Policies that override objects of their namespace.
    pub const OVERRIDE_POLICY: Kind = Kind::new("policy.kcloudlabs.io/v1alpha1", "OverridePolicy");
    /// Policies that validate objects of all namespaces.
    pub const CLUSTER_VALIDATE_POLICY: Kind =
        Kind::new("policy.kcloudlabs.io/v1alpha1", "ClusterValidatePolicy");
    /// Results of policies for a namespace, in the format of the Kubernetes policy working group.
    pub const POLICY_REPORT: Kind = Kind::new("wgpolicyk8s.io/v1alpha2", "PolicyReport");
    /// Results of policies for cluster-scoped objects.
    pub const CLUSTER_POLICY_REPORT: Kind = Kind::new("wgpolicyk8s.io/v1alpha2", "ClusterPolicyReport");
    /// InjectionTargets.
    pub const INJECTION_TARGET: Kind = Kind::new(windlass_object::names::API_VERSION, "InjectionTarget");
}

impl Kind {
    /// Names a kind of the local cluster.
    pub const fn new(api_version: &'static str, kind: &'static str) -> Self {
        Self {
            cluster: InCluster::Local,
            api_version: Cow::Borrowed(api_version),
            kind: Cow::Borrowed(kind),
        }
    }

    /// Names a kind of the local cluster at run time.
    pub fn named(api_version: impl Into<Cow<'static, str>>, kind: impl Into<Cow<'static, str>>) -> Self {
        Self {
            cluster: InCluster::Local,
            api_version: api_version.into(),
            kind: kind.into(),
        }
    }

    /// Returns the same kind in another cluster.
    #[must_use]
    pub fn in_cluster(self, cluster: InCluster) -> Self {
        Self { cluster, ..self }
    }

    /// Returns the kind of the object with this key.
    pub fn from_key(key: &ObjectKey) -> Self {
        Self::named(key.api_version.clone(), key.kind.clone()).in_cluster(key.cluster)
    }

    /// Returns the kind of a CustomResourceDefinition, in one of its versions.
    pub fn from_crd(crd: &Value, version: &str) -> Self {
        let text = |pointer| object::text(crd, pointer).unwrap_or_default();
        let api_version = format!("{}/{version}", text("/spec/group"));
        Self::named(api_version, text("/spec/names/kind").to_owned())
    }

    /// Returns the key of an object of this kind.
    pub fn object(&self, namespace: Option<&str>, name: &str) -> ObjectKey {
        ObjectKey {
            cluster: self.cluster,
            api_version: self.api_version.clone().into_owned(),
            kind: self.kind.clone().into_owned(),
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        }
    }

    /// Returns all versions in which a kind of targets may be watched.
    pub fn versions_of(target: &TargetKind) -> impl Iterator<Item = Self> {
        let older = target
            .older
            .iter()
            .map(|version| Self::named(format!("{}/{version}", target.group), target.kind.clone()));
        std::iter::once(Self::from(target)).chain(older)
    }

    /// Returns the preferred version if this is an older one, which is watched only while the preferred one is not served.
    pub(crate) fn preferred_version(&self) -> Option<&'static TargetKind> {
        let (group, version) = self.group_version();
        let is_older = |target: &&TargetKind| {
            target.group == group && target.kind == self.kind && target.older.contains(&version)
        };
        KINDS.iter().find(is_older)
    }

    /// Returns the group and the version; the core group is empty.
    pub fn group_version(&self) -> (&str, &str) {
        object::group_and_version(&self.api_version)
    }
}

impl From<&TargetKind> for Kind {
    fn from(target: &TargetKind) -> Self {
        Self::named(target.api_version(), target.kind.clone())
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, Kind={}{}", self.api_version, self.kind, self.cluster)
    }
}

impl Resources {
    pub(super) fn find(&self, kind: &Kind) -> Option<ServedKind> {
        self.known.read().get(kind).cloned()
    }

    pub(super) fn forget(&self, kind: &Kind) {
        self.known.write().remove(kind);
    }

    /// Caches the kinds of an `APIResourceList` for the group version of `requested`.
    pub(super) fn cache(&self, requested: &Kind, list: &Value) {
        let mut known = self.known.write();
        for entry in object::items(list, "/resources") {
            let (Some(plural), Some(kind)) = (object::text(entry, "/name"), object::text(entry, "/kind"))
            else {
                continue;
            };
            if plural.contains('/') {
                continue;
            }
            let kind = Kind {
                kind: kind.to_owned().into(),
                ..requested.clone()
            };
            let (group, version) = kind.group_version();
            let served = ServedKind {
                resource: ApiResource {
                    group: group.to_owned(),
                    version: version.to_owned(),
                    api_version: kind.api_version.clone().into_owned(),
                    kind: kind.kind.clone().into_owned(),
                    plural: plural.to_owned(),
                },
                namespaced: entry.get("namespaced").and_then(Value::as_bool).unwrap_or(false),
            };
            known.insert(kind, served);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn named_target_kinds_have_the_version_of_the_table() {
        let targets: Vec<_> = KINDS.iter().map(Kind::from).collect();
        for named in [
            kinds::CUSTOM_RESOURCE_DEFINITION,
            kinds::VALIDATING_WEBHOOK_CONFIGURATION,
            kinds::MUTATING_WEBHOOK_CONFIGURATION,
            kinds::API_SERVICE,
            kinds::EXTENSION_CONFIG,
        ] {
            assert!(targets.contains(&named), "{named}");
        }
    }

    #[test]
    fn older_versions_are_in_the_table() {
        let older = Kind::new("runtime.cluster.x-k8s.io/v1alpha1", "ExtensionConfig");
        assert_eq!(
            older.preferred_version().map(Kind::from),
            Some(kinds::EXTENSION_CONFIG)
        );
        assert_eq!(kinds::EXTENSION_CONFIG.preferred_version(), None);
        assert_eq!(kinds::SECRET.preferred_version(), None);
        for target in KINDS.iter() {
            assert!(
                Kind::versions_of(target)
                    .all(|kind| kind.preferred_version().is_none_or(|newer| newer == target))
            );
        }
    }

    #[test]
    fn kinds_of_a_crd_exist_in_each_version() {
        let crd = json!({"spec": {"group": "example.com", "names": {"kind": "Widget", "plural": "widgets"}}});
        for version in ["v1", "v2alpha1"] {
            let kind = Kind::from_crd(&crd, version);
            assert_eq!(kind.group_version(), ("example.com", version));
            assert_eq!(kind.kind, "Widget");
        }
    }
}
