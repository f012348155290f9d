//! Hooks at the beginning and the end of a cluster.

use super::macros::{hooks, requests, responses, retry_responses};
use crate::EmbeddedObject;

hooks! {
    "Lifecycle Hooks":

    /// Before the objects of a Cluster are made.
    BeforeClusterCreate(BeforeClusterCreateRequest) -> BeforeClusterCreateResponse {
        summary: "Before a Cluster is created",
        description: "Asked once the Cluster is there, before any object of its topology is made. None is made while a handler blocks.",
    }

    /// When the control plane of a Cluster can be reached for the first time.
    AfterControlPlaneInitialized(AfterControlPlaneInitializedRequest) -> AfterControlPlaneInitializedResponse {
        summary: "After a control plane is reachable for the first time",
        description: "Told until every handler has succeeded, and then no more. It blocks nothing.",
    }

    /// Before the objects of a Cluster are deleted.
    BeforeClusterDelete(BeforeClusterDeleteRequest) -> BeforeClusterDeleteResponse {
        summary: "Before a Cluster is deleted",
        description: "Asked once the Cluster is to be deleted, before any object of its topology is. None is deleted while a handler \
                      blocks.",
    }
}

requests! {
    /// Asks whether a Cluster may be created.
    pub struct BeforeClusterCreateRequest {
        /// The Cluster.
        pub cluster: EmbeddedObject,
    }

    /// Tells that a control plane is reachable.
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
    /// Whether a handler has taken note of the control plane.
    pub struct AfterControlPlaneInitializedResponse {}
}

retry_responses! {
    /// Whether a Cluster may be created.
    pub struct BeforeClusterCreateResponse;

    /// Whether a Cluster may be deleted.
    pub struct BeforeClusterDeleteResponse;
}
