//! What all hooks of Cluster API have in common, written once.

use crate::HookMetadata;

/// Of each hook. Asking one twice does no more than asking it once: an extension is required to succeed again where it has
/// succeeded before, since all of them are asked again while one blocks or fails (Cluster API's book, "Implementing Runtime
/// Extensions", Idempotence).
pub(super) const METADATA: HookMetadata = HookMetadata {
    idempotent: true,
    ..HookMetadata::new()
};

/// Hooks of this group and version, each with its request, its response and what is known of it beside them; and the function
/// `definitions`, which has them all.
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

        /// The hooks of this file.
        pub(super) fn definitions() -> Vec<$crate::catalog::HookDefinition> {
            vec![$($crate::catalog::HookDefinition::of::<$hook>()),+]
        }
    };
}

/// A type that is written and read as Go does.
macro_rules! object {
    ($(#[$attribute:meta])* pub struct $name:ident { $($fields:tt)* }) => {
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "camelCase", default)]
        $(#[$attribute])*
        pub struct $name { $($fields)* }
    };
}

/// Requests, which have settings beside their fields (`CommonRequest` of `api/runtime/hooks/v1alpha1/common_types.go`).
macro_rules! requests {
    ($($(#[$attribute:meta])* pub struct $request:ident { $($fields:tt)* })+) => { $(
        $crate::cluster_api::macros::object! {
            $(#[$attribute])*
            pub struct $request {
                /// Of the ExtensionConfig and of whoever asks, whose own go first.
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

/// Responses, which have a status and a message beside their fields (`CommonResponse` of
/// `api/runtime/hooks/v1alpha1/common_types.go`).
macro_rules! responses {
    ($($(#[$attribute:meta])* pub struct $response:ident { $($fields:tt)* })+) => { $(
        $crate::cluster_api::macros::object! {
            $(#[$attribute])*
            pub struct $response {
                /// Whether the handler succeeded.
                #[serde(default = "crate::response::ResponseStatus::unset")]
                pub status: $crate::response::ResponseStatus,
                /// What a person is to know.
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

/// Responses of hooks that block, which say when to ask again (`CommonRetryResponse` of
/// `api/runtime/hooks/v1alpha1/common_types.go`).
macro_rules! retry_responses {
    ($($(#[$attribute:meta])* pub struct $response:ident;)+) => { $(
        $crate::cluster_api::macros::object! {
            $(#[$attribute])*
            pub struct $response {
                /// Whether the handler succeeded.
                #[serde(default = "crate::response::ResponseStatus::unset")]
                pub status: $crate::response::ResponseStatus,
                /// What a person is to know.
                #[serde(skip_serializing_if = "String::is_empty")]
                pub message: String,
                /// After how many seconds to ask again; what is asked for does not go on before. 0: it does.
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
