//! A webhook as an interpreter.

use std::sync::Arc;

use bytes::Bytes;
use thiserror::Error;

use super::{
    InterpreterFailurePolicy, InterpreterService, ResourceInterpreterContext, ResourceInterpreterRequest,
    WebhookAnswerError, WebhookCallError, WebhookCaller, WebhookRequestError,
    webhook_configuration::{CONFIGURATION_KIND, SharedWebhook},
};
use crate::{
    Answer, Interpreter, Question,
    customization::CustomizationProblem,
    interpreter::{AnswerFuture, InterpreterFailure},
};

/// Why a webhook has no answer.
#[derive(Debug, Error)]
pub enum WebhookError {
    /// The webhook configurations are not listed yet.
    #[error("waiting for the first list of {CONFIGURATION_KIND}s")]
    NotListed,
    /// The configuration of the webhook is invalid.
    #[error("cannot be called: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Configuration(
        /// All problems.
        Vec<CustomizationProblem>,
    ),
    /// The question cannot be sent.
    #[error(transparent)]
    Request(#[from] WebhookRequestError),
    /// The call failed.
    #[error(transparent)]
    Call(#[from] WebhookCallError),
    /// The response is invalid or reports a failure.
    #[error(transparent)]
    Answer(#[from] WebhookAnswerError),
}

/// Placeholder for webhooks that are not listed yet: every question fails.
pub(super) struct UnlistedWebhooks;

/// Sends questions to one webhook.
#[derive(Clone)]
pub struct WebhookInterpreter {
    pub(super) webhook: SharedWebhook,
    pub(super) revision: u64,
    pub(super) full_revision: u64,
    pub(super) caller: Arc<dyn WebhookCaller>,
}

impl WebhookError {
    /// Reports whether `failurePolicy: Ignore` applies: the call failed or its response is invalid.
    /// Configuration errors and failures that the webhook reports are never ignored.
    pub fn is_ignorable(&self) -> bool {
        match self {
            Self::NotListed | Self::Configuration(_) | Self::Request(_) => false,
            Self::Call(error) => error.is_ignorable,
            Self::Answer(error) => error.is_ignorable(),
        }
    }
}

impl Interpreter for UnlistedWebhooks {
    fn name(&self) -> String {
        "Webhooks".to_owned()
    }

    fn interpret<'a>(&'a self, _: Question<'a>) -> AnswerFuture<'a> {
        Box::pin(async { Err(WebhookError::NotListed.into()) })
    }
}

impl WebhookInterpreter {
    /// The unique ID in the cluster, `<configuration>/<webhook>`.
    pub fn uid(&self) -> &str {
        &self.webhook.uid
    }

    /// The name of the webhook's configuration.
    pub fn configuration(&self) -> &str {
        &self.webhook.configuration
    }

    /// As long as this is unchanged, previous answers of the webhook may be reused: its configuration is the
    /// same except for trust bundles.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// As long as this is unchanged, a call that failed is expected to fail again: its configuration is the
    /// same.
    pub fn full_revision(&self) -> u64 {
        self.full_revision
    }

    /// The Service that is called, if it is not a URL.
    pub fn service(&self) -> Option<&InterpreterService> {
        self.webhook.service.as_ref()
    }

    async fn ask(&self, question: Question<'_>) -> Result<Answer, WebhookError> {
        let call = self.webhook.called.as_ref();
        let call = call.map_err(|problems| WebhookError::Configuration(problems.clone()))?;
        let uid = self.caller.uid();
        let request = ResourceInterpreterRequest::from_question(question, uid.as_str())?;
        let context = ResourceInterpreterContext::from_request(request);
        let body = serde_json::to_vec(&context).map_err(WebhookRequestError::Write)?;
        let said = self
            .caller
            .call(&call.server, Bytes::from(body), call.timeout)
            .await?;
        Ok(Answer::read_response(&said, &uid, question)?)
    }

    fn is_ignored(&self, failure: &InterpreterFailure) -> bool {
        let failure = failure.downcast_ref::<WebhookError>();
        self.webhook.policy == InterpreterFailurePolicy::Ignore
            && failure.is_some_and(WebhookError::is_ignorable)
    }
}

impl Interpreter for WebhookInterpreter {
    fn name(&self) -> String {
        let webhook = &self.webhook;
        format!(
            "{CONFIGURATION_KIND} {}, webhook {}",
            webhook.configuration, webhook.name
        )
    }

    fn can_be_skipped(&self, failure: &InterpreterFailure) -> bool {
        let is_ignored = self.is_ignored(failure);
        if is_ignored {
            self.caller.on_ignored(&self.webhook.uid, &**failure);
        }
        is_ignored
    }

    fn interpret<'a>(&'a self, question: Question<'a>) -> AnswerFuture<'a> {
        Box::pin(async move { Ok(self.ask(question).await?) })
    }
}
