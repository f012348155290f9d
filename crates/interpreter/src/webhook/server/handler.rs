//! Handlers of questions.

use std::{fmt::Display, future::Future, sync::Arc};

use futures::future::BoxFuture;
use http::Extensions;
use tokio::time::Instant;

use crate::{Answer, ResourceInterpreter, webhook::ResourceInterpreterRequest};

/// Information about a call besides the request.
#[derive(Clone, Debug)]
pub struct InterpreterCall {
    /// The path of the request.
    pub path: Arc<str>,
    /// The caller's deadline; the handler is dropped then.
    pub deadline: Instant,
    /// Extensions of the HTTP request, for example
    /// [`ConnectedClient`](webhook_transport::server::ConnectedClient).
    pub extensions: Extensions,
}

/// The future of an answer, or of an error that is sent to the caller.
pub(super) type Handled = BoxFuture<'static, Result<Answer, String>>;

/// Answers some operations at a path.
pub(super) trait InterpreterHandler: Send + Sync {
    fn handle(&self, request: ResourceInterpreterRequest<'static>, call: InterpreterCall) -> Handled;
}

/// A function as a handler.
pub(super) struct FunctionHandler<F>(pub(super) F);

/// A resource interpreter as a handler.
pub(super) struct AskingHandler(pub(super) Arc<ResourceInterpreter>);

impl<F, R, E> InterpreterHandler for FunctionHandler<F>
where
    F: Fn(ResourceInterpreterRequest<'static>, InterpreterCall) -> R + Send + Sync,
    R: Future<Output = Result<Answer, E>> + Send + 'static,
    E: Display,
{
    fn handle(&self, request: ResourceInterpreterRequest<'static>, call: InterpreterCall) -> Handled {
        let answer = (self.0)(request, call);
        // The alternate form includes the causes of many errors.
        Box::pin(async move { answer.await.map_err(|error| format!("{error:#}")) })
    }
}

impl InterpreterHandler for AskingHandler {
    fn handle(&self, request: ResourceInterpreterRequest<'static>, _: InterpreterCall) -> Handled {
        let interpreter = self.0.clone();
        Box::pin(async move {
            let asked = interpreter.ask(request.question()).await;
            let answer = asked.map_err(|error| format!("{error}: {}", error.source))?;
            answer.ok_or_else(|| {
                format!(
                    "no interpreter answers {} of {}",
                    request.operation, request.kind.kind
                )
            })
        })
    }
}
