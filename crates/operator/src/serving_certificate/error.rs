//! Errors of a reconciliation.

use thiserror::Error;
use windlass_cluster::{RequestError, keys::GenerateKeyError};
use windlass_trust::{
    objects::{IssueCaError, UnknownCertificate, WriteAuthoritiesError, WriteBundleError},
    pki::{IssueError, ReadCredentialsError, ReadPrivateKeyError},
};

/// Why a reconciliation failed and is retried.
#[derive(Debug, Error)]
pub enum ServingCertificateError {
    /// An object cannot be read or written.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The ServingCertificate does not match its schema.
    #[error(transparent)]
    Read(#[from] ReadCertificateError),
    /// A key cannot be generated.
    #[error(transparent)]
    Generate(#[from] GenerateKeyError),
    /// A CA cannot be created.
    #[error(transparent)]
    Mint(#[from] IssueCaError),
    /// The CAs cannot be stored.
    #[error(transparent)]
    Store(#[from] WriteAuthoritiesError),
    /// A serving certificate cannot be issued.
    #[error(transparent)]
    Issue(#[from] IssueError),
    /// The stored key cannot be read.
    #[error("cannot read the private key of the serving certificate")]
    Key(#[from] ReadPrivateKeyError),
    /// A serving certificate and its key do not match.
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

/// The ServingCertificate does not match its schema.
#[derive(Debug, Error)]
#[error("cannot read the ServingCertificate")]
pub struct ReadCertificateError(#[from] serde_json::Error);
