//! Errors of hook calls.

use std::time::Duration;

use thiserror::Error;
use webhook_transport::client::PostError;

use super::NamespaceError;
use crate::{HookReference, catalog::VersionConversionError, go_json::DecodeError, registry::NotListedError};

/// Why a call has no response.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the message explains each field")]
pub enum HookCallError {
    /// The hook is not in the catalog.
    #[error("{0} is not registered in the catalog")]
    UnknownHook(HookReference),
    /// The ExtensionConfigs are not listed yet.
    #[error(transparent)]
    NotListed(#[from] NotListedError),
    /// The handler does not exist.
    #[error("extension handler {0:?} not found")]
    NotRegistered(
        /// The name of the handler.
        String,
    ),
    /// The handler answers a different hook.
    #[error("extension handler {handler:?} answers {answers}, not {asked}")]
    OtherHook {
        handler: String,
        /// The hook that it answers, in any version.
        answers: String,
        /// The requested hook.
        asked: String,
    },
    /// The handler does not apply to the namespace.
    #[error("extension handler {handler:?} is not for namespace {namespace:?}")]
    OtherNamespace { handler: String, namespace: String },
    /// It is unknown whether the handler applies to the namespace.
    #[error("cannot determine whether extension handler {handler:?} applies: {source}")]
    Namespace {
        handler: String,
        /// The cause, which is part of the message.
        source: NamespaceError,
    },
    /// The call of the handler failed.
    #[error("failed to call extension handler {handler:?}: {source}")]
    Handler {
        handler: String,
        /// The cause, which is part of the message.
        source: HandlerError,
    },
}

/// Why a call of one handler failed.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the message explains each field")]
pub enum HandlerError {
    /// The request or the response cannot be converted between versions.
    #[error(transparent)]
    Conversion(#[from] VersionConversionError),
    /// The catalog has no conversion to the handler's version.
    #[error("there is no conversion from {from} to {to}")]
    NoConversion {
        /// The requested version.
        from: HookReference,
        to: HookReference,
    },
    /// The request cannot be encoded as JSON.
    #[error("cannot encode the request: {0}")]
    Encode(serde_json::Error),
    /// The request failed.
    #[error(transparent)]
    Post(#[from] PostError),
    /// The response cannot be decoded.
    #[error("failed to decode its response: {0}")]
    Decode(DecodeError),
    /// The circuit breaker blocks calls to the server.
    #[error("its server did not answer, next call in {:.1}s", .0.as_secs_f32())]
    CircuitOpen(
        /// How long calls are still blocked.
        Duration,
    ),
    /// The budget of the call is used up.
    #[error("no time left in the budget")]
    OutOfBudget,
    /// The handler reports a failure.
    #[error("got failure response with message: {0}")]
    Failure(String),
    /// The handler's status is neither success nor failure.
    #[error("got unknown response status {status:?} with message: {message}")]
    UnknownStatus { status: String, message: String },
}

impl HandlerError {
    /// Reports whether `failurePolicy: Ignore` applies: the call itself failed. Configuration errors and
    /// failures that the handler reports are never ignored.
    pub fn is_ignorable(&self) -> bool {
        match self {
            Self::Post(error) => !matches!(error, PostError::Trust(_) | PostError::Path(_)),
            Self::Decode(_) | Self::CircuitOpen(_) | Self::OutOfBudget => true,
            Self::Conversion(_)
            | Self::NoConversion { .. }
            | Self::Encode(_)
            | Self::Failure(_)
            | Self::UnknownStatus { .. } => false,
        }
    }
}
