//! Hooks around what becomes of a cluster.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{hooks, requests, retry_responses};
use crate::{EmbeddedObject, HookMetadata, hook::Settings, response::ResponseStatus};

hooks! {
    /// Before the objects of a Cluster are made.
    BeforeClusterCreate(BeforeClusterCreateRequest) -> BeforeClusterCreateResponse, HookMetadata {
        summary: "Before a Cluster is created",
        description: "Asked once the Cluster is there, before any of its objects is made. It is not made before every handler lets it be.",
        tags: &["Lifecycle Hooks"],
        idempotent: true,
        ..HookMetadata::new()
    };

    /// Before a Cluster gets another Kubernetes version.
    BeforeClusterUpgrade(BeforeClusterUpgradeRequest) -> BeforeClusterUpgradeResponse, HookMetadata {
        summary: "Before a Cluster is upgraded",
        description: "Asked when the version of the Cluster was changed, before its control plane gets it.",
        tags: &["Lifecycle Hooks"],
        idempotent: true,
        ..HookMetadata::new()
    };
}

/// What [`BeforeClusterCreate`] asks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BeforeClusterCreateRequest {
    /// Of the ExtensionConfig and of whoever asks.
    #[serde(skip_serializing_if = "Settings::is_empty")]
    pub settings: Settings,
    /// The Cluster.
    pub cluster: EmbeddedObject,
}

/// What [`BeforeClusterCreate`] is answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BeforeClusterCreateResponse {
    /// Whether the handler succeeded.
    #[serde(default = "ResponseStatus::unset")]
    pub status: ResponseStatus,
    /// What a person is to know.
    pub message: String,
    /// After how many seconds to ask again, until when the Cluster is not made; 0 lets it be made.
    pub retry_after_seconds: i32,
}

/// What [`BeforeClusterUpgrade`] asks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BeforeClusterUpgradeRequest {
    /// Of the ExtensionConfig and of whoever asks.
    #[serde(skip_serializing_if = "Settings::is_empty")]
    pub settings: Settings,
    /// The Cluster.
    pub cluster: EmbeddedObject,
    /// The version that it has.
    pub from_kubernetes_version: String,
    /// The version that it is to have.
    pub to_kubernetes_version: String,
}

/// What [`BeforeClusterUpgrade`] is answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BeforeClusterUpgradeResponse {
    /// Whether the handler succeeded.
    #[serde(default = "ResponseStatus::unset")]
    pub status: ResponseStatus,
    /// What a person is to know.
    pub message: String,
    /// After how many seconds to ask again, until when nothing is upgraded; 0 lets it be.
    pub retry_after_seconds: i32,
}

requests!(BeforeClusterCreateRequest, BeforeClusterUpgradeRequest);
retry_responses!(BeforeClusterCreateResponse, BeforeClusterUpgradeResponse);
