//! The certificate chain and the key of a server.

use thiserror::Error;
use windlass_object::secret_keys::{TLS_CERTIFICATE, TLS_PRIVATE_KEY};

use super::{
    Certificate, PrivateKey, ReadPrivateKeyError,
    pem::{self, MalformedPem},
};

/// The contents of a Secret of type `kubernetes.io/tls`, whose key belongs to the leaf.
#[derive(Debug)]
pub struct Credentials {
    leaf: Certificate,
    intermediates: Vec<Certificate>,
    key: PrivateKey,
}

/// Why a serving Secret cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReadCredentialsError {
    /// The chain cannot be parsed.
    #[error("cannot read {TLS_CERTIFICATE}")]
    Chain(#[source] MalformedPem),
    /// The chain is empty.
    #[error("{TLS_CERTIFICATE} is empty")]
    NoLeaf,
    /// The key cannot be parsed.
    #[error("cannot read {TLS_PRIVATE_KEY}")]
    Key(#[source] ReadPrivateKeyError),
    /// The key belongs to another certificate.
    #[error("{TLS_PRIVATE_KEY} does not match the first certificate in {TLS_CERTIFICATE}")]
    Mismatch,
}

impl Credentials {
    /// Combines a leaf, its intermediates and its key.
    ///
    /// # Errors
    ///
    /// If the key does not belong to the leaf.
    pub fn new(
        leaf: Certificate,
        intermediates: Vec<Certificate>,
        key: PrivateKey,
    ) -> Result<Self, ReadCredentialsError> {
        if !key.belongs_to(&leaf) {
            return Err(ReadCredentialsError::Mismatch);
        }
        Ok(Self {
            leaf,
            intermediates,
            key,
        })
    }

    /// Parses `tls.crt` and `tls.key`.
    ///
    /// # Errors
    ///
    /// If they are not certificates and the matching key.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, ReadCredentialsError> {
        let mut chain = pem::parse(chain)
            .map_err(ReadCredentialsError::Chain)?
            .into_iter();
        let leaf = chain.next().ok_or(ReadCredentialsError::NoLeaf)?;
        let key = PrivateKey::from_pem(key).map_err(ReadCredentialsError::Key)?;
        Self::new(leaf, chain.collect(), key)
    }

    /// Returns the server's own certificate.
    pub fn leaf(&self) -> &Certificate {
        &self.leaf
    }

    /// Returns the certificates that follow the leaf in the handshake.
    pub fn intermediates(&self) -> &[Certificate] {
        &self.intermediates
    }

    /// Returns the leaf's key.
    pub fn key(&self) -> &PrivateKey {
        &self.key
    }

    /// Returns `tls.crt`: the leaf and its intermediates.
    pub fn chain_pem(&self) -> String {
        std::iter::once(&self.leaf)
            .chain(&self.intermediates)
            .map(Certificate::to_pem)
            .collect()
    }
}
