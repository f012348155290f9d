//! The hook that plans an upgrade.

use super::{
    is_default,
    macros::{hooks, object, requests, responses},
};
use crate::EmbeddedObject;

hooks! {
    "Chained Upgrade Hook":

    /// Lists the versions of an upgrade.
    GenerateUpgradePlan(GenerateUpgradePlanRequest) -> GenerateUpgradePlanResponse {
        summary: "Lists the versions of an upgrade",
        description: "Called whenever a plan is needed. The control plane needs at least one version of each minor version up to and including the target; without versions for the workers, they take as few steps as the version skew policy of Kubernetes allows.",
    }
}

requests! {
    /// Requests an upgrade plan.
    #[schemars(extend("required" = ["cluster", "fromControlPlaneKubernetesVersion", "toKubernetesVersion"]))]
    pub struct GenerateUpgradePlanRequest {
        /// The Cluster.
        #[serde(skip_serializing_if = "is_default")]
        pub cluster: EmbeddedObject,
        /// The current version of the control plane.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub from_control_plane_kubernetes_version: String,
        /// The oldest version of a worker; empty without workers.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub from_workers_kubernetes_version: String,
        /// The target version.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub to_kubernetes_version: String,
    }
}

responses! {
    /// An upgrade plan.
    pub struct GenerateUpgradePlanResponse {
        /// The versions of the control plane, in order; the last one is the target.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub control_plane_upgrades: Vec<UpgradeStep>,
        /// The versions of the workers, in order; the last one is the target. If empty, as few steps as
        /// possible.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub workers_upgrades: Vec<UpgradeStep>,
    }
}

object! {
    /// A step of an upgrade (`UpgradeStep` and `UpgradeStepInfo`).
    #[schemars(extend("required" = ["version"]))]
    pub struct UpgradeStep {
        /// The Kubernetes version of this step.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub version: String,
    }
}
