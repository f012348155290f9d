//! The hook with which a server says which others it answers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{hooks, responses};
use crate::{HookMetadata, HookRequest, response::ResponseStatus};

hooks! {
    /// Which hooks a server answers, by which handlers.
    Discovery(DiscoveryRequest) -> DiscoveryResponse, HookMetadata {
        summary: "Which hooks a server answers",
        description: "Asked when a server is registered and from then on again and again. Every server must answer it.",
        tags: &["Discovery"],
        singleton: true,
        idempotent: true,
        ..HookMetadata::new()
    };
}

/// Asks for all handlers of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DiscoveryRequest {}

/// The handlers of a server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DiscoveryResponse {
    /// Whether the server can say.
    #[serde(default = "ResponseStatus::unset")]
    pub status: ResponseStatus,
    /// Why it cannot.
    pub message: String,
    /// What answers.
    pub handlers: Vec<HandlerInfo>,
}

/// A handler as its server tells of it. [`Handler`](crate::discovery::Handler) is what is left of one that is as it must be.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HandlerInfo {
    /// A DNS label.
    pub name: String,
    /// What it answers.
    pub request_hook: RequestHook,
    /// How long it may take, 0 to 30; 10 where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i32>,
    /// `Fail` or `Ignore`; `Fail` where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<String>,
}

/// A hook by its names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RequestHook {
    /// Its group and version, with a slash between them.
    pub api_version: String,
    /// Its name.
    pub hook: String,
}

impl HookRequest for DiscoveryRequest {
    const HAS_SETTINGS: bool = false;
}

responses!(DiscoveryResponse);
