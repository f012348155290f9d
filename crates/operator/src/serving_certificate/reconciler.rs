//! What a reconciliation has: the context, and what is remembered between two of them.

use std::{sync::Arc, time::Instant};

use thiserror::Error;
use windlass_cluster::{RequestError, keys::GenerateKeyError};
use windlass_trust::{
    objects::{IssueCaError, UnknownCertificate, WriteAuthoritiesError, WriteBundleError},
    pki::{IssueError, ReadCredentialsError, ReadPrivateKeyError},
};

use super::{ReadCertificateError, Timing, history::Histories};
use crate::{Context, reporting::Announced};

/// Reconciles ServingCertificates.
pub(super) struct CertificateReconciler {
    pub(super) context: Arc<Context>,
    pub(super) timing: Timing,
    pub(super) histories: Histories,
    pub(super) announced: Announced,
    /// Tells the marks of this process from those of others.
    pub(super) run: u64,
    pub(super) started: Instant,
}

/// Why a reconciliation has to be tried again.
#[derive(Debug, Error)]
pub enum ServingCertificateError {
    /// An object cannot be read or written.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The ServingCertificate is not what its schema says.
    #[error(transparent)]
    Read(#[from] ReadCertificateError),
    /// A key cannot be generated.
    #[error(transparent)]
    Generate(#[from] GenerateKeyError),
    /// A CA cannot be made.
    #[error(transparent)]
    Mint(#[from] IssueCaError),
    /// The CAs cannot be stored.
    #[error(transparent)]
    Store(#[from] WriteAuthoritiesError),
    /// A serving certificate cannot be issued.
    #[error(transparent)]
    Issue(#[from] IssueError),
    /// The key that is kept cannot be read.
    #[error("cannot read the private key of the serving certificate")]
    Key(#[from] ReadPrivateKeyError),
    /// A serving certificate and its key do not belong together.
    #[error(transparent)]
    Credentials(#[from] ReadCredentialsError),
    /// A trust bundle cannot be written.
    #[error(transparent)]
    Bundle(#[from] WriteBundleError),
    /// A certificate is missing.
    #[error(transparent)]
    Unknown(#[from] UnknownCertificate),
    /// The status cannot be written as JSON.
    #[error("cannot write the status")]
    Encode(#[source] serde_json::Error),
}
