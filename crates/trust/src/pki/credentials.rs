//! What a server serves with: a chain that begins with its leaf, and the leaf's key.

use thiserror::Error;
use windlass_object::secret_keys::{TLS_CERTIFICATE, TLS_PRIVATE_KEY};

use super::{
    Certificate, PrivateKey, ReadPrivateKeyError,
    pem::{self, MalformedPem},
};

/// The contents of a Secret of type `kubernetes.io/tls`, the key being the leaf's.
#[derive(Debug)]
pub struct Credentials {
    leaf: Certificate,
    intermediates: Vec<Certificate>,
    key: PrivateKey,
}

/// Why a serving Secret cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReadCredentialsError {
    /// The chain cannot be read.
    #[error("cannot read {TLS_CERTIFICATE}")]
    Chain(#[source] MalformedPem),
    /// There is not a certificate.
    #[error("{TLS_CERTIFICATE} is empty")]
    NoLeaf,
    /// The key cannot be read.
    #[error("cannot read {TLS_PRIVATE_KEY}")]
    Key(#[source] ReadPrivateKeyError),
    /// The key belongs to another certificate.
    #[error("{TLS_PRIVATE_KEY} does not match the first certificate in {TLS_CERTIFICATE}")]
    Mismatch,
}

// === impl Credentials ===

impl Credentials {
    /// Puts a leaf, the certificates that lead from it to a CA, and the leaf's key together.
    ///
    /// # Errors
    ///
    /// When the key is not the leaf's.
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

    /// Reads `tls.crt` and `tls.key`.
    ///
    /// # Errors
    ///
    /// When either is anything but certificates and their key.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, ReadCredentialsError> {
        let mut chain = pem::parse(chain)
            .map_err(ReadCredentialsError::Chain)?
            .into_iter();
        let leaf = chain.next().ok_or(ReadCredentialsError::NoLeaf)?;
        let key = PrivateKey::from_pem(key).map_err(ReadCredentialsError::Key)?;
        Self::new(leaf, chain.collect(), key)
    }

    /// The server's own certificate.
    pub fn leaf(&self) -> &Certificate {
        &self.leaf
    }

    /// What follows the leaf in the handshake.
    pub fn intermediates(&self) -> &[Certificate] {
        &self.intermediates
    }

    /// The leaf's key.
    pub fn key(&self) -> &PrivateKey {
        &self.key
    }

    /// `tls.crt`: the leaf, then what follows it.
    pub fn chain_pem(&self) -> String {
        std::iter::once(&self.leaf)
            .chain(&self.intermediates)
            .map(Certificate::to_pem)
            .collect()
    }
}
