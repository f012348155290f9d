//! Macros for the common parts of Cluster API's hooks.

use crate::HookMetadata;

/// Metadata common to all hooks. They are idempotent: Cluster API calls all extensions again while one blocks
/// or fails, and requires that an extension succeeds again (Cluster API's book, "Implementing Runtime
/// Extensions", Idempotence).
pub(super) const METADATA: HookMetadata = HookMetadata {
    idempotent: true,
    ..HookMetadata::new()
};

/// Defines hooks of this group and version with their request, response and metadata; and the function
/// `definitions`, which returns all of them.
macro_rules! hooks {
    ($tag:literal: $(
        $(#[$attribute:meta])*
        $hook:ident($request:ident) -> $response:ident { $($field:ident: $value:expr),+ $(,)? }
    )+) => {
        $(
            $(#[$attribute])*
            #[derive(Clone, Copy, Debug)]
            pub struct $hook;

            impl $crate::Hook for $hook {
                type Request = $request;
                type Response = $response;
                const GROUP: &'static str = $crate::cluster_api::GROUP;
                const VERSION: &'static str = $crate::cluster_api::VERSION;
                const NAME: &'static str = stringify!($hook);
                const METADATA: $crate::HookMetadata = $crate::HookMetadata {
                    tags: &[$tag],
                    $($field: $value,)+
                    ..$crate::cluster_api::macros::METADATA
                };
            }
        )+

        /// Returns the hooks of this module.
        pub(super) fn definitions() -> Vec<$crate::catalog::HookDefinition> {
            vec![$($crate::catalog::HookDefinition::for_hook::<$hook>()),+]
        }
    };
}

/// Defines a type that is encoded and decoded as in Go.
macro_rules! object {
    ($(#[$attribute:meta])* pub struct $name:ident { $($fields:tt)* }) => {
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "camelCase", default)]
        $(#[$attribute])*
        pub struct $name { $($fields)* }
    };
}

/// Defines requests, which have settings (`CommonRequest` of `api/runtime/hooks/v1alpha1/common_types.go`).
macro_rules! requests {
    ($($(#[$attribute:meta])* pub struct $request:ident { $($fields:tt)* })+) => { $(
        $crate::cluster_api::macros::object! {
            $(#[$attribute])*
            pub struct $request {
                /// Settings of the ExtensionConfig and of the caller; the caller's take precedence.
                #[serde(skip_serializing_if = "std::collections::BTreeMap::is_empty")]
                pub settings: $crate::hook::HookSettings,
                $($fields)*
            }
        }

        impl $crate::HookRequest for $request {
            const HAS_SETTINGS: bool = true;
        }
    )+ };
}

/// Defines responses, which have a status and a message (`CommonResponse` of
/// `api/runtime/hooks/v1alpha1/common_types.go`).
macro_rules! responses {
    ($($(#[$attribute:meta])* pub struct $response:ident { $($fields:tt)* })+) => { $(
        $crate::cluster_api::macros::object! {
            $(#[$attribute])*
            pub struct $response {
                /// Whether the handler succeeded.
                #[serde(default = "crate::response::ResponseStatus::unset")]
                pub status: $crate::response::ResponseStatus,
                /// A message for users.
                #[serde(skip_serializing_if = "String::is_empty")]
                pub message: String,
                $($fields)*
            }
        }

        impl $crate::HookResponse for $response {
            fn outcome(&self) -> $crate::response::HookOutcome {
                $crate::response::HookOutcome {
                    status: self.status.clone(),
                    message: self.message.clone(),
                    retry_after_seconds: 0,
                }
            }

            fn set_outcome(&mut self, outcome: $crate::response::HookOutcome) {
                (self.status, self.message) = (outcome.status, outcome.message);
            }
        }
    )+ };
}

/// Defines responses of blocking hooks, which have a retry time (`CommonRetryResponse` of
/// `api/runtime/hooks/v1alpha1/common_types.go`).
macro_rules! retry_responses {
    ($($(#[$attribute:meta])* pub struct $response:ident;)+) => { $(
        $crate::cluster_api::macros::object! {
            $(#[$attribute])*
            pub struct $response {
                /// Whether the handler succeeded.
                #[serde(default = "crate::response::ResponseStatus::unset")]
                pub status: $crate::response::ResponseStatus,
                /// A message for users.
                #[serde(skip_serializing_if = "String::is_empty")]
                pub message: String,
                /// The number of seconds until the hook is called again; the operation is blocked until then.
                /// 0 does not block.
                pub retry_after_seconds: i32,
            }
        }

        impl $crate::HookResponse for $response {
            fn outcome(&self) -> $crate::response::HookOutcome {
                $crate::response::HookOutcome {
                    status: self.status.clone(),
                    message: self.message.clone(),
                    retry_after_seconds: self.retry_after_seconds,
                }
            }

            fn set_outcome(&mut self, outcome: $crate::response::HookOutcome) {
                (self.status, self.message) = (outcome.status, outcome.message);
                self.retry_after_seconds = outcome.retry_after_seconds;
            }
        }
    )+ };
}

pub(super) use {hooks, object, requests, responses, retry_responses};
