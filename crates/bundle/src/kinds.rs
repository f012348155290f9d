//! The kinds of objects that a bundle may contain next to its ClusterServiceVersion and its
//! CustomResourceDefinitions, one row per kind. Checks, rendering, watches, deletion and the operator's
//! ClusterRole follow from these rows.

use windlass_object::object;

use crate::phase::Phase;

/// A kind of object that bundles may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BundledKind {
    /// `group/version` in which the operator reads and deletes the objects; only the version for the core
    /// group. A bundle may use another version.
    pub api_version: &'static str,
    /// The kind, for example `ConfigMap`.
    pub kind: &'static str,
    /// The plural resource name in RBAC rules and API paths, for example `configmaps`.
    pub plural: &'static str,
    /// Whether the kind is namespaced.
    pub namespaced: bool,
    /// The phase of the install that applies the objects.
    pub phase: Phase,
    /// Whether the operator works without the objects: the API is an add-on that the cluster may not have.
    pub optional: bool,
}

const RBAC: &str = "rbac.authorization.k8s.io/v1";
const MONITORING: &str = "monitoring.coreos.com/v1";
const CONSOLE: &str = "console.openshift.io/v1";

impl BundledKind {
    /// Every kind, as in `supported_resources.go` of operator-registry. That file calls VerticalPodAutoscaler
    /// cluster-scoped, which it is not. It has neither ExtensionConfigs nor APIServices, because OLM does not
    /// prove the servers behind them.
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

    /// The kind in which an operator reports whether it can be upgraded. Windlass creates one per bundle;
    /// bundles contain none.
    pub const OPERATOR_CONDITION: Self = namespaced(
        "operators.coreos.com/v2",
        "OperatorCondition",
        "operatorconditions",
    )
    .optional();

    /// Every kind that an install may create, except kinds that have a phase of their own.
    pub fn installable() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().chain([Self::OPERATOR_CONDITION])
    }

    /// Finds a kind by name, ignoring the group, as OLM does.
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

impl Phase {
    /// The phase that applies objects of a kind. The first rows are kinds that Windlass renders; bundled
    /// objects follow [`BundledKind::ALL`].
    pub fn for_kind(kind: &str) -> Self {
        match kind {
            "ServingCertificate" => Self::Certificates,
            "CustomResourceDefinition" => Self::Crds,
            // The only pods are canaries: bundles contain none.
            "Deployment" | "Pod" => Self::Deployments,
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => Self::Callers,
            _ => BundledKind::from_kind(kind).map_or(Self::Configuration, |bundled| bundled.phase),
        }
    }
}
