//! Why a hook is not answered.

use std::time::Duration;

use thiserror::Error;
use webhook_transport::client::PostError;

use super::NamespaceError;
use crate::{HookReference, catalog::VersionConversionError, go_json::DecodeError, registry::NotListedError};

/// Why a call has no response.
#[derive(Debug, Error)]
pub enum HookCallError {
    /// Nobody knows the hook.
    #[error("{0} is not registered in the catalog")]
    UnknownHook(
        /// The hook.
        HookReference,
    ),
    /// Nobody knows yet who answers.
    #[error(transparent)]
    NotListed(#[from] NotListedError),
    /// There is no such handler.
    #[error("extension handler {0:?} not found")]
    NotRegistered(
        /// Its name.
        String,
    ),
    /// The handler answers something else.
    #[error("extension handler {handler:?} answers {answers}, not {asked}")]
    OtherHook {
        /// The handler.
        handler: String,
        /// What it answers, among all versions.
        answers: String,
        /// What it was to answer.
        asked: String,
    },
    /// The handler is for others.
    #[error("extension handler {handler:?} is not for namespace {namespace:?}")]
    OtherNamespace {
        /// The handler.
        handler: String,
        /// The namespace.
        namespace: String,
    },
    /// It is not known for whom the handler is.
    #[error("cannot tell whether extension handler {handler:?} is called: {source}")]
    Namespace {
        /// The handler.
        handler: String,
        /// Why; said with the handler wherever this is said.
        source: NamespaceError,
    },
    /// The handler has not answered as it should.
    #[error("failed to call extension handler {handler:?}: {source}")]
    Handler {
        /// The handler.
        handler: String,
        /// Why; said with the handler wherever this is said.
        source: HandlerError,
    },
}

/// What was wrong with a call to one handler.
#[derive(Debug, Error)]
pub enum HandlerError {
    /// The request cannot be made for its version, or its response not be read as one of the version that is asked.
    #[error(transparent)]
    Conversion(#[from] VersionConversionError),
    /// Nobody has said how to convert to its version.
    #[error("there is no conversion from {from} to {to}")]
    NoConversion {
        /// The version that is asked.
        from: HookReference,
        /// The version that it answers.
        to: HookReference,
    },
    /// What is asked cannot be written as JSON.
    #[error("cannot encode the request: {0}")]
    Encode(
        /// Why.
        serde_json::Error,
    ),
    /// It does not answer.
    #[error(transparent)]
    Post(#[from] PostError),
    /// It answers what nobody can read.
    #[error("failed to decode its response: {0}")]
    Decode(
        /// Why.
        DecodeError,
    ),
    /// It did not answer before, and is left alone.
    #[error("its server has not answered, and is called again in {:.1}s", .0.as_secs_f32())]
    CircuitOpen(
        /// How long yet.
        Duration,
    ),
    /// There is no time left.
    #[error("there is no time left for it")]
    OutOfBudget,
    /// It says that it failed.
    #[error("got failure response with message: {0}")]
    Failure(
        /// What it says.
        String,
    ),
    /// It says neither that it failed nor that it did not.
    #[error("got unknown response status {status:?} with message: {message}")]
    UnknownStatus {
        /// What it says.
        status: String,
        /// What it says beside that.
        message: String,
    },
}

// === impl HandlerError ===

impl HandlerError {
    /// Whether the call failed rather than what was asked: all that `failurePolicy: Ignore` is about. That somebody has made a
    /// mistake, or that the handler says it failed, is never ignored.
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
