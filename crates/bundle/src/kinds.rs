//! The kinds of objects that a bundle may bring along beside its ClusterServiceVersion and its
//! CustomResourceDefinitions: one row for each. What is checked, rendered, watched and deleted, and what the operator may
//! do (its ClusterRole), follows from these rows.

use windlass_object::object;

use crate::phase::Phase;

/// A kind that bundles may bring along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BundledKind {
    /// `group/version` in which the operator reads and deletes its objects, or only the version for the core group. A
    /// bundle may write them in another.
    pub api_version: &'static str,
    /// For example `ConfigMap`.
    pub kind: &'static str,
    /// The name of the resource, as RBAC and paths of the API server have it, for example `configmaps`.
    pub plural: &'static str,
    /// Whether its objects are in namespaces, rather than in the cluster.
    pub namespaced: bool,
    /// When an install applies its objects.
    pub phase: Phase,
    /// Whether an operator works without its objects: what serves the kind comes with something else, which may not be
    /// in the cluster.
    pub optional: bool,
}

const RBAC: &str = "rbac.authorization.k8s.io/v1";
const MONITORING: &str = "monitoring.coreos.com/v1";
const CONSOLE: &str = "console.openshift.io/v1";

// === impl BundledKind ===

impl BundledKind {
    /// Every kind, as in `supported_resources.go` of operator-registry; but that calls VerticalPodAutoscaler
    /// cluster-scoped, which it is not. It knows neither ExtensionConfigs nor APIServices, since nobody there proves whom they
    /// call.
    pub const ALL: [Self; 22] = [
        namespaced("v1", "ServiceAccount", "serviceaccounts").in_phase(Phase::Identity),
        namespaced(RBAC, "Role", "roles").in_phase(Phase::Identity),
        namespaced(RBAC, "RoleBinding", "rolebindings").in_phase(Phase::Identity),
        cluster_scoped(RBAC, "ClusterRole", "clusterroles").in_phase(Phase::Identity),
        cluster_scoped(RBAC, "ClusterRoleBinding", "clusterrolebindings").in_phase(Phase::Identity),
        namespaced("v1", "Service", "services").in_phase(Phase::Services),
        namespaced("v1", "ConfigMap", "configmaps"),
        namespaced("v1", "Secret", "secrets"),
        namespaced("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"),
        namespaced("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
        cluster_scoped("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses"),
        namespaced(
            "autoscaling.k8s.io/v1",
            "VerticalPodAutoscaler",
            "verticalpodautoscalers",
        )
        .optional(),
        namespaced(MONITORING, "PrometheusRule", "prometheusrules").optional(),
        namespaced(MONITORING, "ServiceMonitor", "servicemonitors").optional(),
        namespaced(MONITORING, "PodMonitor", "podmonitors").optional(),
        cluster_scoped(CONSOLE, "ConsoleYAMLSample", "consoleyamlsamples").optional(),
        cluster_scoped(CONSOLE, "ConsoleQuickStart", "consolequickstarts").optional(),
        cluster_scoped(CONSOLE, "ConsoleCLIDownload", "consoleclidownloads").optional(),
        cluster_scoped(CONSOLE, "ConsoleLink", "consolelinks").optional(),
        cluster_scoped(CONSOLE, "ConsolePlugin", "consoleplugins").optional(),
        cluster_scoped(
            "runtime.cluster.x-k8s.io/v1beta2",
            "ExtensionConfig",
            "extensionconfigs",
        )
        .in_phase(Phase::Callers)
        .optional(),
        cluster_scoped("apiregistration.k8s.io/v1", "APIService", "apiservices").in_phase(Phase::Callers),
    ];

    /// By which an operator says whether it can be upgraded. One comes with every bundle, which brings none along itself.
    pub const OPERATOR_CONDITION: Self = namespaced(
        "operators.coreos.com/v2",
        "OperatorCondition",
        "operatorconditions",
    )
    .optional();

    /// Every kind, beside those that have a phase of their own, of which an install may have objects.
    pub fn installable() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().chain([Self::OPERATOR_CONDITION])
    }

    /// The kind of that name; groups are not looked at, as OLM does not look at them.
    pub fn from_kind(kind: &str) -> Option<&'static Self> {
        const ALL: &[BundledKind] = &BundledKind::ALL;
        ALL.iter().find(|bundled| bundled.kind == kind)
    }

    /// The API group; empty for the core group.
    pub fn group(&self) -> &'static str {
        object::group_and_version(self.api_version).0
    }

    const fn optional(self) -> Self {
        Self {
            optional: true,
            ..self
        }
    }

    const fn in_phase(self, phase: Phase) -> Self {
        Self { phase, ..self }
    }
}

const fn namespaced(api_version: &'static str, kind: &'static str, plural: &'static str) -> BundledKind {
    BundledKind {
        api_version,
        kind,
        plural,
        namespaced: true,
        phase: Phase::Configuration,
        optional: false,
    }
}

const fn cluster_scoped(api_version: &'static str, kind: &'static str, plural: &'static str) -> BundledKind {
    BundledKind {
        namespaced: false,
        ..namespaced(api_version, kind, plural)
    }
}

// === impl Phase ===

impl Phase {
    /// The phase that applies objects of a kind: of what is rendered as it is here, of what a bundle brings along as
    /// [`BundledKind::ALL`] says.
    pub fn for_kind(kind: &str) -> Self {
        match kind {
            "ServingCertificate" => Self::Certificates,
            "CustomResourceDefinition" => Self::Crds,
            // Of pods there are only canaries: bundles bring none.
            "Deployment" | "Pod" => Self::Deployments,
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => Self::Callers,
            _ => BundledKind::from_kind(kind).map_or(Self::Configuration, |bundled| bundled.phase),
        }
    }
}
