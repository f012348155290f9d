//! A webhook that is asked.

use std::sync::Arc;

use bytes::Bytes;
use thiserror::Error;

use super::{
    InterpreterFailurePolicy, InterpreterService, ResourceInterpreterContext, ResourceInterpreterRequest,
    WebhookAnswerError, WebhookCallError, WebhookCaller, WebhookRequestError,
    read::{CONFIGURATION_KIND, SharedWebhook},
};
use crate::{
    Answer, Interpreter, Question,
    customization::CustomizationProblem,
    interpreter::{InterpreterFailure, Interpreting},
};

/// Why a webhook has no answer.
#[derive(Debug, Error)]
pub enum WebhookError {
    /// Nobody knows yet which webhooks there are.
    #[error("waiting for the first list of {CONFIGURATION_KIND}s")]
    NotListed,
    /// It cannot be called by what its configuration says.
    #[error("cannot be called: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Configuration(
        /// All that is wrong.
        Vec<CustomizationProblem>,
    ),
    /// The question cannot be sent.
    #[error(transparent)]
    Request(#[from] WebhookRequestError),
    /// It says nothing.
    #[error(transparent)]
    Call(#[from] WebhookCallError),
    /// What it says is not an answer.
    #[error(transparent)]
    Answer(#[from] WebhookAnswerError),
}

/// Stands for webhooks that are not known yet.
pub(super) struct UnlistedWebhooks;

/// Asks one webhook.
#[derive(Clone)]
pub struct WebhookInterpreter {
    pub(super) webhook: SharedWebhook,
    pub(super) revision: u64,
    pub(super) reading: u64,
    pub(super) caller: Arc<dyn WebhookCaller>,
}

// === impl WebhookError ===

impl WebhookError {
    /// Whether the call failed rather than what was asked: all that `failurePolicy: Ignore` is about. That somebody has made a mistake,
    /// or that the webhook says it failed, is never ignored.
    pub fn is_ignorable(&self) -> bool {
        match self {
            Self::NotListed | Self::Configuration(_) | Self::Request(_) => false,
            Self::Call(error) => error.is_ignorable,
            Self::Answer(error) => error.is_ignorable(),
        }
    }
}

// === impl UnlistedWebhooks ===

impl Interpreter for UnlistedWebhooks {
    fn name(&self) -> String {
        "Webhooks".to_owned()
    }

    fn interpret<'a>(&'a self, _: Question<'a>) -> Interpreting<'a> {
        Box::pin(async { Err(WebhookError::NotListed.into()) })
    }
}

// === impl WebhookInterpreter ===

impl WebhookInterpreter {
    /// `<configuration>/<webhook>`, which tells it from all others of a cluster.
    pub fn uid(&self) -> &str {
        &self.webhook.uid
    }

    /// The name of its configuration.
    pub fn configuration(&self) -> &str {
        &self.webhook.configuration
    }

    /// As long as this is the same, what it answered to a question may be taken for what it would answer to the same one again: nothing
    /// of its configuration has changed but whom it trusts.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// As long as this is the same, a call that failed may be expected to fail again: nothing of its configuration has changed at all.
    pub fn reading(&self) -> u64 {
        self.reading
    }

    /// The Service that it is called by, if it is one.
    pub fn service(&self) -> Option<&InterpreterService> {
        self.webhook.service.as_ref()
    }

    async fn ask(&self, question: Question<'_>) -> Result<Answer, WebhookError> {
        let call = self.webhook.called.as_ref();
        let call = call.map_err(|problems| WebhookError::Configuration(problems.clone()))?;
        let uid = self.caller.uid();
        let request = ResourceInterpreterRequest::of(question, uid.as_str())?;
        let context = ResourceInterpreterContext::of_request(request);
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

    fn gives_way(&self, failure: &InterpreterFailure) -> bool {
        let is_ignored = self.is_ignored(failure);
        if is_ignored {
            self.caller.ignored(&self.webhook.uid, &**failure);
        }
        is_ignored
    }

    fn interpret<'a>(&'a self, question: Question<'a>) -> Interpreting<'a> {
        Box::pin(async move { Ok(self.ask(question).await?) })
    }
}
