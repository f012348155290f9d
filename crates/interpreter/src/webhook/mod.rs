//! Webhooks: servers that answer questions with Karmada's protocol, configured by
//! `ResourceInterpreterWebhookConfiguration`s.
//!
//! ```text
//! objects -> Webhooks -> matching rules -> the first -> ResourceInterpreterContext -> POST -> Answer
//! ```

mod admission;
mod api;
mod caller;
#[cfg(feature = "client")]
mod client;
mod context;
mod crd;
mod patch;
mod request;
mod response;
mod rule;
#[cfg(feature = "server")]
pub mod server;
mod shadowing;
#[cfg(test)]
mod tests;
mod webhook_configuration;
mod webhook_interpreter;
mod webhooks;

#[cfg(feature = "client")]
pub use self::client::InterpreterClient;
pub use self::{
    admission::admit_webhooks,
    api::{
        InterpreterClientConfig, InterpreterFailurePolicy, InterpreterService, ResourceInterpreterWebhook,
        RuleWithOperations,
    },
    caller::{CallFuture, WebhookCallError, WebhookCaller},
    context::{
        GroupVersionKind, RequestStatus, ResourceInterpreterContext, ResourceInterpreterRequest,
        ResourceInterpreterResponse,
    },
    crd::webhook_configuration_crd,
    patch::{PatchObjectError, apply_json_patch},
    request::WebhookRequestError,
    response::WebhookAnswerError,
    shadowing::ShadowedWebhook,
    webhook_interpreter::{WebhookError, WebhookInterpreter},
    webhooks::{WebhookConfigurationState, WebhookUsage, Webhooks},
};
