//! Hooks for the upgrade of a cluster, which takes several steps if the versions are far apart.

use super::{
    UpgradeStep,
    macros::{hooks, requests, retry_responses},
};
use crate::EmbeddedObject;

hooks! {
    "Lifecycle Hooks":

    /// Called before a Cluster is upgraded.
    BeforeClusterUpgrade(BeforeClusterUpgradeRequest) -> BeforeClusterUpgradeResponse {
        summary: "Before a Cluster is upgraded",
        description: "Called once for each upgrade, after the version of the Cluster has changed and before the first step of its control plane. Nothing is upgraded while a handler blocks.",
    }

    /// Called before each step of the control plane's upgrade.
    BeforeControlPlaneUpgrade(BeforeControlPlaneUpgradeRequest) -> BeforeControlPlaneUpgradeResponse {
        summary: "Before a control plane is upgraded",
        description: "Called before each version of the upgrade plan, including the target. The control plane keeps its version while a handler blocks.",
    }

    /// Called after each step of the control plane's upgrade.
    AfterControlPlaneUpgrade(AfterControlPlaneUpgradeRequest) -> AfterControlPlaneUpgradeResponse {
        summary: "After a control plane is upgraded",
        description: "Called when all machines of the control plane have a version of the upgrade plan, including the target. Neither the workers nor the control plane are upgraded further while a handler blocks.",
    }

    /// Called before each step of the workers' upgrade.
    BeforeWorkersUpgrade(BeforeWorkersUpgradeRequest) -> BeforeWorkersUpgradeResponse {
        summary: "Before workers are upgraded",
        description: "Called before each version of the workers' upgrade plan, including the target, but not for versions that the workers skip. The workers keep their version while a handler blocks.",
    }

    /// Called after each step of the workers' upgrade.
    AfterWorkersUpgrade(AfterWorkersUpgradeRequest) -> AfterWorkersUpgradeResponse {
        summary: "After workers are upgraded",
        description: "Called when all workers have a version of their upgrade plan, including the target. The upgrade does not continue while a handler blocks.",
    }

    /// Called after a Cluster is upgraded.
    AfterClusterUpgrade(AfterClusterUpgradeRequest) -> AfterClusterUpgradeResponse {
        summary: "After a Cluster is upgraded",
        description: "Called when the control plane and all workers have the version of the Cluster. No other upgrade starts while a handler blocks.",
    }
}

requests! {
    /// Asks whether a Cluster may be upgraded.
    pub struct BeforeClusterUpgradeRequest {
        /// The Cluster.
        pub cluster: EmbeddedObject,
        /// The current version.
        pub from_kubernetes_version: String,
        /// The target version.
        pub to_kubernetes_version: String,
        /// The versions of the control plane's upgrade plan, including the target.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub control_plane_upgrades: Vec<UpgradeStep>,
        /// The versions of the workers' upgrade plan, including the target.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub workers_upgrades: Vec<UpgradeStep>,
    }

    /// Asks whether a control plane may be upgraded to its next version.
    pub struct BeforeControlPlaneUpgradeRequest {
        /// The Cluster.
        pub cluster: EmbeddedObject,
        /// The current version of the control plane.
        pub from_kubernetes_version: String,
        /// The next version of the control plane.
        pub to_kubernetes_version: String,
        /// The remaining versions of the control plane's upgrade plan.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub control_plane_upgrades: Vec<UpgradeStep>,
        /// The remaining versions of the workers' upgrade plan.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub workers_upgrades: Vec<UpgradeStep>,
    }

    /// Asks whether the upgrade may continue after a step of the control plane.
    pub struct AfterControlPlaneUpgradeRequest {
        /// The Cluster.
        pub cluster: EmbeddedObject,
        /// The current version of the control plane.
        pub kubernetes_version: String,
        /// The remaining versions of the control plane's upgrade plan.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub control_plane_upgrades: Vec<UpgradeStep>,
        /// The remaining versions of the workers' upgrade plan.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub workers_upgrades: Vec<UpgradeStep>,
    }

    /// Asks whether workers may be upgraded to their next version.
    pub struct BeforeWorkersUpgradeRequest {
        /// The Cluster.
        pub cluster: EmbeddedObject,
        /// The current version of the workers.
        pub from_kubernetes_version: String,
        /// The next version of the workers.
        pub to_kubernetes_version: String,
        /// The remaining versions of the control plane's upgrade plan.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub control_plane_upgrades: Vec<UpgradeStep>,
        /// The remaining versions of the workers' upgrade plan.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub workers_upgrades: Vec<UpgradeStep>,
    }

    /// Asks whether the upgrade may continue after a step of the workers.
    pub struct AfterWorkersUpgradeRequest {
        /// The Cluster.
        pub cluster: EmbeddedObject,
        /// The current version of the workers.
        pub kubernetes_version: String,
        /// The remaining versions of the control plane's upgrade plan.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub control_plane_upgrades: Vec<UpgradeStep>,
        /// The remaining versions of the workers' upgrade plan.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub workers_upgrades: Vec<UpgradeStep>,
    }

    /// Asks whether the next upgrade of a Cluster may start.
    pub struct AfterClusterUpgradeRequest {
        /// The Cluster.
        pub cluster: EmbeddedObject,
        /// The version of the control plane and all workers.
        pub kubernetes_version: String,
    }
}

retry_responses! {
    /// Whether a Cluster may be upgraded.
    pub struct BeforeClusterUpgradeResponse;

    /// Whether a control plane may be upgraded to its next version.
    pub struct BeforeControlPlaneUpgradeResponse;

    /// Whether the upgrade may continue after a step of the control plane.
    pub struct AfterControlPlaneUpgradeResponse;

    /// Whether workers may be upgraded to their next version.
    pub struct BeforeWorkersUpgradeResponse;

    /// Whether the upgrade may continue after a step of the workers.
    pub struct AfterWorkersUpgradeResponse;

    /// Whether the next upgrade of a Cluster may start.
    pub struct AfterClusterUpgradeResponse;
}
