//! The hook that lists the handlers of a server.

use super::macros::{hooks, object, responses};
use crate::HookRequest;

hooks! {
    "Discovery":

    /// Lists the hooks that a server answers, and their handlers.
    Discovery(DiscoveryRequest) -> DiscoveryResponse {
        summary: "Lists the hooks that a server answers",
        description: "Called when a server is registered, and periodically from then on. Every server must answer it.",
        singleton: true,
    }
}

object! {
    /// Requests all handlers of a server.
    pub struct DiscoveryRequest {}
}

responses! {
    /// The handlers of a server.
    pub struct DiscoveryResponse {
        /// The handlers.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub handlers: Vec<HandlerInfo>,
    }
}

object! {
    /// A handler as listed by its server (`ExtensionHandler`).
    pub struct HandlerInfo {
        /// The name, a DNS label.
        pub name: String,
        /// The hook that the handler answers.
        pub request_hook: RequestHook,
        /// The timeout of calls in seconds, 0 to 30; the default is 10.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "i32")]
        pub timeout_seconds: Option<i32>,
        /// Fail or Ignore; the default is Fail.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "String")]
        pub failure_policy: Option<String>,
    }
}

object! {
    /// The names of a hook (`GroupVersionHook`).
    pub struct RequestHook {
        /// The group and version, separated by a slash.
        pub api_version: String,
        /// The name.
        pub hook: String,
    }
}

impl HookRequest for DiscoveryRequest {
    const HAS_SETTINGS: bool = false;
}
