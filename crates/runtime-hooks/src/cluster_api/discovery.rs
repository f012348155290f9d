//! The hook with which a server says which others it answers.

use super::macros::{hooks, object, responses};
use crate::HookRequest;

hooks! {
    "Discovery":

    /// Which hooks a server answers, by which handlers.
    Discovery(DiscoveryRequest) -> DiscoveryResponse {
        summary: "Which hooks a server answers",
        description: "Asked when a server is registered and from then on again and again. Every server must answer it.",
        singleton: true,
    }
}

object! {
    /// Asks for all handlers of a server.
    pub struct DiscoveryRequest {}
}

responses! {
    /// The handlers of a server.
    pub struct DiscoveryResponse {
        /// What answers.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub handlers: Vec<HandlerInfo>,
    }
}

object! {
    /// A handler as its server tells of it (`ExtensionHandler`).
    pub struct HandlerInfo {
        /// A DNS label.
        pub name: String,
        /// What it answers.
        pub request_hook: RequestHook,
        /// How long it may take, 0 to 30; 10 where nothing is said.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "i32")]
        pub timeout_seconds: Option<i32>,
        /// Fail or Ignore; Fail where nothing is said.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "String")]
        pub failure_policy: Option<String>,
    }
}

object! {
    /// A hook by its names (`GroupVersionHook`).
    pub struct RequestHook {
        /// Its group and version, with a slash between them.
        pub api_version: String,
        /// Its name.
        pub hook: String,
    }
}

impl HookRequest for DiscoveryRequest {
    const HAS_SETTINGS: bool = false;
}
