//! Handlers, and what they make of a request.

use std::{fmt::Display, future::Future, sync::Arc};

use futures::future::BoxFuture;
use http::Extensions;
use tokio::time::Instant;

use crate::{Answer, ResourceInterpreter, webhook::ResourceInterpreterRequest};

/// What a handler may know of a call beside the request.
#[derive(Clone, Debug)]
pub struct InterpreterCall {
    /// Where it was asked.
    pub path: Arc<str>,
    /// When the caller gives up; the handler is dropped then.
    pub deadline: Instant,
    /// What whoever brought the request here says of it, for example
    /// [`ConnectedClient`](webhook_transport::server::ConnectedClient).
    pub extensions: Extensions,
}

/// An answer, or why there is none, which is told the caller.
pub(super) type Handled = BoxFuture<'static, Result<Answer, String>>;

/// What answers some operations at a path.
pub(super) trait InterpreterHandler: Send + Sync {
    fn handle(&self, request: ResourceInterpreterRequest<'static>, call: InterpreterCall) -> Handled;
}

/// A handler that is a function.
pub(super) struct FunctionHandler<F>(pub(super) F);

/// A handler that asks others.
pub(super) struct AskingHandler(pub(super) Arc<ResourceInterpreter>);

// === impl FunctionHandler ===

impl<F, R, E> InterpreterHandler for FunctionHandler<F>
where
    F: Fn(ResourceInterpreterRequest<'static>, InterpreterCall) -> R + Send + Sync,
    R: Future<Output = Result<Answer, E>> + Send + 'static,
    E: Display,
{
    fn handle(&self, request: ResourceInterpreterRequest<'static>, call: InterpreterCall) -> Handled {
        let answer = (self.0)(request, call);
        // The alternate form: errors that know their causes name them.
        Box::pin(async move { answer.await.map_err(|error| format!("{error:#}")) })
    }
}

// === impl AskingHandler ===

impl InterpreterHandler for AskingHandler {
    fn handle(&self, request: ResourceInterpreterRequest<'static>, _: InterpreterCall) -> Handled {
        let interpreter = self.0.clone();
        Box::pin(async move {
            let asked = interpreter.ask(request.question()).await;
            let answer = asked.map_err(|error| format!("{error}: {}", error.source))?;
            answer.ok_or_else(|| format!("nobody answers {} of {}", request.operation, request.kind.kind))
        })
    }
}
