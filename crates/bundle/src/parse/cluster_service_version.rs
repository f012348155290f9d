//! A typed, read-only view of a ClusterServiceVersion (`operators.coreos.com/v1alpha1`).
//!
//! The view borrows the JSON, which stays as written.

use serde_json::Value;
use windlass_object::object;

/// Which namespaces an operator can watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InstallMode {
    /// Only the namespace of the operator.
    OwnNamespace,
    /// One namespace other than the operator's.
    SingleNamespace,
    /// Several namespaces.
    MultiNamespace,
    /// The whole cluster.
    AllNamespaces,
}

/// The kinds of webhook that a ClusterServiceVersion can define.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WebhookType {
    /// `ValidatingAdmissionWebhook`.
    Validating,
    /// `MutatingAdmissionWebhook`.
    Mutating,
    /// `ConversionWebhook`.
    Conversion,
}

/// A typed view of a ClusterServiceVersion.
#[derive(Clone, Copy, Debug)]
pub struct ClusterServiceVersion<'a>(&'a Value);

/// One entry of `spec.install.spec.deployments`.
#[derive(Clone, Copy, Debug)]
pub struct DeploymentSpec<'a>(pub &'a Value);

/// One entry of `spec.install.spec.permissions` or `clusterPermissions`.
#[derive(Clone, Copy, Debug)]
pub struct Permission<'a>(pub &'a Value);

/// One entry of `spec.webhookdefinitions`.
#[derive(Clone, Copy, Debug)]
pub struct WebhookDefinition<'a>(pub &'a Value);

/// One entry of `spec.apiservicedefinitions.owned`.
#[derive(Clone, Copy, Debug)]
pub struct ApiServiceDefinition<'a>(pub &'a Value);

impl InstallMode {
    /// Every mode, in OLM's order.
    pub const ALL: [Self; 4] = [
        Self::OwnNamespace,
        Self::SingleNamespace,
        Self::MultiNamespace,
        Self::AllNamespaces,
    ];

    /// The name in the ClusterServiceVersion.
    pub fn name(self) -> &'static str {
        match self {
            Self::OwnNamespace => "OwnNamespace",
            Self::SingleNamespace => "SingleNamespace",
            Self::MultiNamespace => "MultiNamespace",
            Self::AllNamespaces => "AllNamespaces",
        }
    }
}

impl WebhookType {
    /// Every type.
    pub const ALL: [Self; 3] = [Self::Validating, Self::Mutating, Self::Conversion];

    /// The name in the ClusterServiceVersion.
    pub fn name(self) -> &'static str {
        match self {
            Self::Validating => "ValidatingAdmissionWebhook",
            Self::Mutating => "MutatingAdmissionWebhook",
            Self::Conversion => "ConversionWebhook",
        }
    }
}

impl<'a> ClusterServiceVersion<'a> {
    /// A view of `object`.
    pub fn new(object: &'a Value) -> Self {
        Self(object)
    }

    /// `metadata.name`; empty when absent.
    pub fn name(self) -> &'a str {
        object::text(self.0, "/metadata/name").unwrap_or_default()
    }

    /// `spec.version`; empty when absent.
    pub fn version(self) -> &'a str {
        object::text(self.0, "/spec/version").unwrap_or_default()
    }

    /// `spec.replaces`.
    pub fn replaces(self) -> Option<&'a str> {
        object::text(self.0, "/spec/replaces").filter(|name| !name.is_empty())
    }

    /// `spec.skips`.
    pub fn skips(self) -> impl Iterator<Item = &'a str> {
        object::items(self.0, "/spec/skips")
            .iter()
            .filter_map(Value::as_str)
    }

    /// The annotation `olm.skipRange`.
    pub fn skip_range(self) -> Option<&'a str> {
        object::annotation(self.0, "olm.skipRange").filter(|range| !range.is_empty())
    }

    /// The custom resources in the annotation `alm-examples`; none if it cannot be parsed.
    pub fn examples(self) -> Vec<Value> {
        object::annotation(self.0, "alm-examples")
            .and_then(|examples| serde_json::from_str(examples).ok())
            .unwrap_or_default()
    }

    /// `metadata.annotations`, without those that are not strings.
    pub fn annotations(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0
            .pointer("/metadata/annotations")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
    }

    /// The install modes that are supported.
    pub fn install_modes(self) -> Vec<InstallMode> {
        let supported = |mode: &InstallMode| {
            object::items(self.0, "/spec/installModes").iter().any(|entry| {
                object::text(entry, "/type") == Some(mode.name())
                    && entry.get("supported").and_then(Value::as_bool) == Some(true)
            })
        };
        InstallMode::ALL.into_iter().filter(supported).collect()
    }

    /// `spec.install.spec.deployments`.
    pub fn deployments(self) -> impl Iterator<Item = DeploymentSpec<'a>> {
        object::items(self.0, "/spec/install/spec/deployments")
            .iter()
            .map(DeploymentSpec)
    }

    /// `spec.install.spec.permissions`.
    pub fn permissions(self) -> impl Iterator<Item = Permission<'a>> {
        object::items(self.0, "/spec/install/spec/permissions")
            .iter()
            .map(Permission)
    }

    /// `spec.install.spec.clusterPermissions`.
    pub fn cluster_permissions(self) -> impl Iterator<Item = Permission<'a>> {
        object::items(self.0, "/spec/install/spec/clusterPermissions")
            .iter()
            .map(Permission)
    }

    /// `spec.webhookdefinitions`.
    pub fn webhooks(self) -> impl Iterator<Item = WebhookDefinition<'a>> {
        object::items(self.0, "/spec/webhookdefinitions")
            .iter()
            .map(WebhookDefinition)
    }

    /// `spec.apiservicedefinitions.owned`.
    pub fn owned_api_services(self) -> impl Iterator<Item = ApiServiceDefinition<'a>> {
        object::items(self.0, "/spec/apiservicedefinitions/owned")
            .iter()
            .map(ApiServiceDefinition)
    }

    /// Names of the CRDs in `spec.customresourcedefinitions.owned`.
    pub fn owned_crds(self) -> impl Iterator<Item = &'a str> {
        object::items(self.0, "/spec/customresourcedefinitions/owned")
            .iter()
            .filter_map(|owned| object::text(owned, "/name"))
    }
}

impl<'a> DeploymentSpec<'a> {
    /// The Deployment's name; empty when absent.
    pub fn name(self) -> &'a str {
        object::text(self.0, "/name").unwrap_or_default()
    }

    /// The Deployment's `spec`.
    pub fn spec(self) -> Option<&'a Value> {
        self.0.get("spec")
    }

    /// Labels of the Deployment itself.
    pub fn labels(self) -> Option<&'a Value> {
        self.0.get("label")
    }
}

impl<'a> Permission<'a> {
    /// The ServiceAccount as written; may be empty, which means `default`.
    pub fn service_account(self) -> &'a str {
        object::text(self.0, "/serviceAccountName").unwrap_or_default()
    }

    /// The rules, `None` where the field is absent or null.
    pub fn rules(self) -> Option<&'a [Value]> {
        self.0.get("rules").and_then(Value::as_array).map(Vec::as_slice)
    }
}

impl<'a> ApiServiceDefinition<'a> {
    /// The API group; empty when absent.
    pub fn group(self) -> &'a str {
        object::text(self.0, "/group").unwrap_or_default()
    }

    /// The version of the group; empty when absent.
    pub fn version(self) -> &'a str {
        object::text(self.0, "/version").unwrap_or_default()
    }

    /// The name of the APIService.
    pub fn name(self) -> String {
        format!("{}.{}", self.version(), self.group())
    }

    /// `deploymentName`; empty when absent.
    pub fn deployment_name(self) -> &'a str {
        object::text(self.0, "/deploymentName").unwrap_or_default()
    }

    /// The port of the Service and of the pods: `containerPort`, or 443 where it is absent or 0.
    pub fn port(self) -> i64 {
        self.0
            .get("containerPort")
            .and_then(Value::as_i64)
            .filter(|port| *port != 0)
            .unwrap_or(443)
    }
}

impl<'a> WebhookDefinition<'a> {
    /// The type; `None` when it is absent or unknown.
    pub fn webhook_type(self) -> Option<WebhookType> {
        let name = object::text(self.0, "/type")?;
        WebhookType::ALL
            .into_iter()
            .find(|webhook_type| webhook_type.name() == name)
    }

    /// `generateName`; empty when absent.
    pub fn generate_name(self) -> &'a str {
        object::text(self.0, "/generateName").unwrap_or_default()
    }

    /// `deploymentName`; empty when absent.
    pub fn deployment_name(self) -> &'a str {
        object::text(self.0, "/deploymentName").unwrap_or_default()
    }

    /// The port of the Service: `containerPort`, or 443 where it is absent or 0.
    ///
    /// 443 is the default in the CRD of the ClusterServiceVersion, which Windlass does not install.
    pub fn port(self) -> i64 {
        self.0
            .get("containerPort")
            .and_then(Value::as_i64)
            .filter(|port| *port != 0)
            .unwrap_or(443)
    }

    /// `targetPort`, a number or a name.
    pub fn target_port(self) -> Option<&'a Value> {
        self.0.get("targetPort").filter(|port| !port.is_null())
    }

    /// The port of the pods: `targetPort`, or the port of the Service where it is absent or 0.
    pub fn served_port(self) -> Value {
        self.target_port()
            .filter(|port| port.as_i64() != Some(0))
            .cloned()
            .unwrap_or_else(|| self.port().into())
    }

    /// The path of `webhookPath`.
    pub fn path(self) -> Option<&'a str> {
        object::text(self.0, "/webhookPath")
    }

    /// `admissionReviewVersions`.
    pub fn review_versions(self) -> Vec<&'a str> {
        object::items(self.0, "/admissionReviewVersions")
            .iter()
            .filter_map(Value::as_str)
            .collect()
    }

    /// `conversionCRDs`.
    pub fn conversion_crds(self) -> impl Iterator<Item = &'a str> {
        object::items(self.0, "/conversionCRDs")
            .iter()
            .filter_map(Value::as_str)
    }
}
