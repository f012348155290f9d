//! Where the pipeline stops: at a gate, or at an error.

use std::time::Duration;

use thiserror::Error;
use tokio::task::JoinError;
use windlass_cluster::{RequestError, apply::ApplyError};

use crate::install::status::{InstallOutcome, Milestone};

/// How soon a watch is looked at again that has not shown what was written.
pub(super) const LAG: Duration = Duration::from_millis(100);

/// Why a reconciliation has to be tried again.
#[derive(Debug, Error)]
pub enum BundleDeploymentError {
    /// An object cannot be read or written.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// An object cannot be applied.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// The BundleDeployment is not what its schema says.
    #[error("cannot read the BundleDeployment")]
    Decode(#[source] serde_json::Error),
    /// The status cannot be written as JSON.
    #[error("cannot write the status")]
    Encode(#[source] serde_json::Error),
    /// A thread that reads a source or asks scripts was lost.
    #[error("loading the source or calling an interpreter was interrupted")]
    Interrupted(#[from] JoinError),
}

/// Why the pipeline goes no further for now.
pub(super) enum Halt {
    /// At a gate that is not open yet, or closed for good until somebody acts.
    Gate(InstallOutcome),
    /// The same, to be looked at again after a time of its own.
    Later(InstallOutcome, Duration),
    /// By an error that may be gone at the next try.
    Error(BundleDeploymentError),
}

impl Halt {
    /// Waits at a gate that opens by itself.
    pub(super) fn waiting(at: Milestone, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Gate(InstallOutcome::waiting(at, reason, message))
    }

    /// Waits at a gate until somebody acts.
    pub(super) fn failed(at: Milestone, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Gate(InstallOutcome::failed(at, reason, message))
    }
}

impl<E: Into<BundleDeploymentError>> From<E> for Halt {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}
