//! The hook that says over which versions a cluster is upgraded.

use super::{
    is_default,
    macros::{hooks, object, requests, responses},
};
use crate::EmbeddedObject;

hooks! {
    "Chained Upgrade Hook":

    /// Over which versions a Cluster goes to another one.
    GenerateUpgradePlan(GenerateUpgradePlanRequest) -> GenerateUpgradePlanResponse {
        summary: "Over which versions a Cluster is upgraded",
        description: "Asked whenever a plan is needed. The control plane goes over at least one version of each minor version up to and \
                      including the target; where nothing is said of the workers, they take as few steps as the version skew of \
                      Kubernetes allows.",
    }
}

requests! {
    /// Asks for the way from one version to another.
    #[schemars(extend("required" = ["cluster", "fromControlPlaneKubernetesVersion", "toKubernetesVersion"]))]
    pub struct GenerateUpgradePlanRequest {
        /// The Cluster.
        #[serde(skip_serializing_if = "is_default")]
        pub cluster: EmbeddedObject,
        /// The version that the control plane has.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub from_control_plane_kubernetes_version: String,
        /// The oldest version that a worker has; empty where there is no worker.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub from_workers_kubernetes_version: String,
        /// The version that all are to have.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub to_kubernetes_version: String,
    }
}

responses! {
    /// The way from one version to another.
    pub struct GenerateUpgradePlanResponse {
        /// The versions of the control plane, in order; the last one is the target.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub control_plane_upgrades: Vec<UpgradeStep>,
        /// The versions of the workers, in order; the last one is the target. Empty: as few as may be.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub workers_upgrades: Vec<UpgradeStep>,
    }
}

object! {
    /// A step of an upgrade (`UpgradeStep` and `UpgradeStepInfo`).
    #[schemars(extend("required" = ["version"]))]
    pub struct UpgradeStep {
        /// The Kubernetes version that it leads to.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub version: String,
    }
}
