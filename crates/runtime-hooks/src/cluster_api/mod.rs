//! Cluster API's own hooks: all of `hooks.runtime.cluster.x-k8s.io/v1alpha1` (`api/runtime/hooks/v1alpha1`).
//!
//! Objects in them are [`EmbeddedObject`](crate::EmbeddedObject)s: which version of a Cluster they carry has changed while the
//! version of the hooks has not.

mod discovery;
mod lifecycle;

pub use discovery::{Discovery, DiscoveryRequest, DiscoveryResponse, HandlerInfo, RequestHook};
pub use lifecycle::*;

/// The group of Cluster API's own hooks (`api/runtime/hooks/v1alpha1/groupversion_info.go`).
pub const GROUP: &str = "hooks.runtime.cluster.x-k8s.io";

/// The version of Cluster API's own hooks.
pub const VERSION: &str = "v1alpha1";

/// Requests with settings.
macro_rules! requests {
    ($($request:ident),+ $(,)?) => { $(
        impl $crate::HookRequest for $request {
            const HAS_SETTINGS: bool = true;
        }
    )+ };
}

/// Responses with a status and a message.
macro_rules! responses {
    ($($response:ident),+ $(,)?) => { $(
        impl $crate::HookResponse for $response {
            fn outcome(&self) -> $crate::response::Outcome {
                $crate::response::Outcome {
                    status: self.status.clone(),
                    message: self.message.clone(),
                    retry_after_seconds: 0,
                }
            }

            fn set_outcome(&mut self, outcome: $crate::response::Outcome) {
                (self.status, self.message) = (outcome.status, outcome.message);
            }
        }
    )+ };
}

/// Responses that say when to ask again, too.
macro_rules! retry_responses {
    ($($response:ident),+ $(,)?) => { $(
        impl $crate::HookResponse for $response {
            fn outcome(&self) -> $crate::response::Outcome {
                $crate::response::Outcome {
                    status: self.status.clone(),
                    message: self.message.clone(),
                    retry_after_seconds: self.retry_after_seconds,
                }
            }

            fn set_outcome(&mut self, outcome: $crate::response::Outcome) {
                (self.status, self.message) = (outcome.status, outcome.message);
                self.retry_after_seconds = outcome.retry_after_seconds;
            }
        }
    )+ };
}

/// Hooks of this group and version, each with its request and response.
macro_rules! hooks {
    ($($(#[$doc:meta])* $hook:ident($request:ident) -> $response:ident, $metadata:expr;)+) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $hook;

        impl $crate::Hook for $hook {
            type Request = $request;
            type Response = $response;
            const GROUP: &'static str = $crate::cluster_api::GROUP;
            const VERSION: &'static str = $crate::cluster_api::VERSION;
            const NAME: &'static str = stringify!($hook);
            const METADATA: $crate::HookMetadata = $metadata;
        }
    )+ };
}

use {hooks, requests, responses, retry_responses};

/// All hooks of this group and version.
pub(crate) fn definitions() -> Vec<crate::catalog::HookDefinition> {
    use crate::catalog::HookDefinition;
    vec![
        HookDefinition::of::<Discovery>(),
        HookDefinition::of::<BeforeClusterCreate>(),
        HookDefinition::of::<BeforeClusterUpgrade>(),
    ]
}
