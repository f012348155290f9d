//! Hooks around the upgrade of a cluster, which goes over several versions where the first and the last are far apart.

use super::{
    UpgradeStep,
    macros::{hooks, requests, retry_responses},
};
use crate::EmbeddedObject;

hooks! {
    "Lifecycle Hooks":

    /// Before a Cluster gets another Kubernetes version.
    BeforeClusterUpgrade(BeforeClusterUpgradeRequest) -> BeforeClusterUpgradeResponse {
        summary: "Before a Cluster is upgraded",
        description: "Asked once for an upgrade, when the version of the Cluster was changed and before its control plane gets any other \
                      version. Nothing is upgraded while a handler blocks.",
    }

    /// Before the control plane of a Cluster gets another Kubernetes version.
    BeforeControlPlaneUpgrade(BeforeControlPlaneUpgradeRequest) -> BeforeControlPlaneUpgradeResponse {
        summary: "Before a control plane is upgraded",
        description: "Asked before each version that the control plane goes over, the target too. It keeps its version while a handler \
                      blocks.",
    }

    /// After the control plane of a Cluster got another Kubernetes version.
    AfterControlPlaneUpgrade(AfterControlPlaneUpgradeRequest) -> AfterControlPlaneUpgradeResponse {
        summary: "After a control plane is upgraded",
        description: "Asked when all machines of the control plane have a version that it goes over, the target too. Neither the workers \
                      nor the control plane get another one while a handler blocks.",
    }

    /// Before the workers of a Cluster get another Kubernetes version.
    BeforeWorkersUpgrade(BeforeWorkersUpgradeRequest) -> BeforeWorkersUpgradeResponse {
        summary: "Before workers are upgraded",
        description: "Asked before each version that the workers go over, the target too; versions that they skip are not asked for. They \
                      keep their version while a handler blocks.",
    }

    /// After the workers of a Cluster got another Kubernetes version.
    AfterWorkersUpgrade(AfterWorkersUpgradeRequest) -> AfterWorkersUpgradeResponse {
        summary: "After workers are upgraded",
        description: "Asked when all workers have a version that they go over, the target too. The upgrade does not go on while a handler \
                      blocks.",
    }

    /// After all of a Cluster got another Kubernetes version.
    AfterClusterUpgrade(AfterClusterUpgradeRequest) -> AfterClusterUpgradeResponse {
        summary: "After a Cluster is upgraded",
        description: "Asked when the control plane and all workers have the version of the Cluster. No other upgrade begins while a handler \
                      blocks.",
    }
}

requests! {
    /// Asks whether a Cluster may be upgraded.
    pub struct BeforeClusterUpgradeRequest {
        /// The Cluster.
        pub cluster: EmbeddedObject,
        /// The version that it has.
        pub from_kubernetes_version: String,
        /// The version that it is to have.
        pub to_kubernetes_version: String,
        /// What the control plane goes over, the target too.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub control_plane_upgrades: Vec<UpgradeStep>,
        /// What the workers go over, the target too.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub workers_upgrades: Vec<UpgradeStep>,
    }

    /// Asks whether a control plane may get its next version.
    pub struct BeforeControlPlaneUpgradeRequest {
        /// The Cluster.
        pub cluster: EmbeddedObject,
        /// The version that the control plane has.
        pub from_kubernetes_version: String,
        /// The version that it gets next.
        pub to_kubernetes_version: String,
        /// What the control plane has still to go over.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub control_plane_upgrades: Vec<UpgradeStep>,
        /// What the workers have still to go over.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub workers_upgrades: Vec<UpgradeStep>,
    }

    /// Asks whether what follows the upgrade of a control plane may go on.
    pub struct AfterControlPlaneUpgradeRequest {
        /// The Cluster.
        pub cluster: EmbeddedObject,
        /// The version that the control plane has now.
        pub kubernetes_version: String,
        /// What the control plane has still to go over.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub control_plane_upgrades: Vec<UpgradeStep>,
        /// What the workers have still to go over.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub workers_upgrades: Vec<UpgradeStep>,
    }

    /// Asks whether workers may get their next version.
    pub struct BeforeWorkersUpgradeRequest {
        /// The Cluster.
        pub cluster: EmbeddedObject,
        /// The version that the workers have.
        pub from_kubernetes_version: String,
        /// The version that they get next.
        pub to_kubernetes_version: String,
        /// What the control plane has still to go over.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub control_plane_upgrades: Vec<UpgradeStep>,
        /// What the workers have still to go over.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub workers_upgrades: Vec<UpgradeStep>,
    }

    /// Asks whether what follows the upgrade of workers may go on.
    pub struct AfterWorkersUpgradeRequest {
        /// The Cluster.
        pub cluster: EmbeddedObject,
        /// The version that the workers have now.
        pub kubernetes_version: String,
        /// What the control plane has still to go over.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub control_plane_upgrades: Vec<UpgradeStep>,
        /// What the workers have still to go over.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub workers_upgrades: Vec<UpgradeStep>,
    }

    /// Asks whether the next upgrade of a Cluster may begin.
    pub struct AfterClusterUpgradeRequest {
        /// The Cluster.
        pub cluster: EmbeddedObject,
        /// The version that all of it has now.
        pub kubernetes_version: String,
    }
}

retry_responses! {
    /// Whether a Cluster may be upgraded.
    pub struct BeforeClusterUpgradeResponse;

    /// Whether a control plane may get its next version.
    pub struct BeforeControlPlaneUpgradeResponse;

    /// Whether what follows the upgrade of a control plane may go on.
    pub struct AfterControlPlaneUpgradeResponse;

    /// Whether workers may get their next version.
    pub struct BeforeWorkersUpgradeResponse;

    /// Whether what follows the upgrade of workers may go on.
    pub struct AfterWorkersUpgradeResponse;

    /// Whether the next upgrade of a Cluster may begin.
    pub struct AfterClusterUpgradeResponse;
}
