//! Hooks for the creation and deletion of a cluster.

use super::macros::{hooks, requests, responses, retry_responses};
use crate::EmbeddedObject;

hooks! {
    "Lifecycle Hooks":

    /// Called before the objects of a Cluster are created.
    BeforeClusterCreate(BeforeClusterCreateRequest) -> BeforeClusterCreateResponse {
        summary: "Before a Cluster is created",
        description: "Called after the Cluster object is created, before any object of its topology is. No object is created while a handler blocks.",
    }

    /// Called when the control plane of a Cluster is reachable for the first time.
    AfterControlPlaneInitialized(AfterControlPlaneInitializedRequest) -> AfterControlPlaneInitializedResponse {
        summary: "After a control plane is reachable for the first time",
        description: "Called until every handler has succeeded once. This hook cannot block.",
    }

    /// Called before the objects of a Cluster are deleted.
    BeforeClusterDelete(BeforeClusterDeleteRequest) -> BeforeClusterDeleteResponse {
        summary: "Before a Cluster is deleted",
        description: "Called after the Cluster object is marked for deletion, before any object of its topology is deleted. No object is deleted while a handler blocks.",
    }
}

requests! {
    /// Asks whether a Cluster may be created.
    pub struct BeforeClusterCreateRequest {
        /// The Cluster.
        pub cluster: EmbeddedObject,
    }

    /// Notifies handlers that a control plane is reachable.
    pub struct AfterControlPlaneInitializedRequest {
        /// The Cluster.
        pub cluster: EmbeddedObject,
    }

    /// Asks whether a Cluster may be deleted.
    pub struct BeforeClusterDeleteRequest {
        /// The Cluster.
        pub cluster: EmbeddedObject,
    }
}

responses! {
    /// Whether the handler has processed the notification.
    pub struct AfterControlPlaneInitializedResponse {}
}

retry_responses! {
    /// Whether a Cluster may be created.
    pub struct BeforeClusterCreateResponse;

    /// Whether a Cluster may be deleted.
    pub struct BeforeClusterDeleteResponse;
}
