//! Webhooks: servers that answer, by Karmada's protocol. Which there are is said by `ResourceInterpreterWebhookConfiguration`s.
//!
//! ```text
//! objects -> Webhooks -> rules that fit -> the first -> ResourceInterpreterContext -> POST -> Answer
//! ```

mod admission;
mod caller;
#[cfg(feature = "client")]
mod client;
mod configuration;
mod context;
mod crd;
mod patch;
mod read;
mod request;
mod response;
mod rule;
#[cfg(feature = "server")]
pub mod server;
mod shadowing;
#[cfg(test)]
mod tests;
mod webhook_interpreter;
mod webhooks;

#[cfg(feature = "client")]
pub use self::client::InterpreterClient;
pub use self::{
    admission::admit_webhooks,
    caller::{Calling, WebhookCallError, WebhookCaller},
    configuration::{
        InterpreterClientConfig, InterpreterFailurePolicy, InterpreterService, ResourceInterpreterWebhook,
        RuleWithOperations,
    },
    context::{
        GroupVersionKind, RequestStatus, ResourceInterpreterContext, ResourceInterpreterRequest,
        ResourceInterpreterResponse,
    },
    crd::webhook_configuration_crd,
    patch::{PatchObjectError, patched},
    request::WebhookRequestError,
    response::WebhookAnswerError,
    shadowing::ShadowedWebhook,
    webhook_interpreter::{WebhookError, WebhookInterpreter},
    webhooks::{WebhookConfigurationState, WebhookUsage, Webhooks},
};
