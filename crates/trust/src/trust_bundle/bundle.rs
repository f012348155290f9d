//! CA certificates in one canonical form.

use jiff::Timestamp;
use thiserror::Error;

use crate::pki::{
    Certificate,
    pem::{self, MalformedPem, UnexpectedBlock},
};

/// Size limit of a `caBundle` in base64 characters: that of ExtensionConfig's schema, the smallest of all
/// kinds of targets.
pub const MAX_ENCODED_LENGTH: usize = 51_200;

/// Distinct CA certificates in an order that depends only on the certificates.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TrustBundle {
    pub(super) certificates: Vec<Certificate>,
}

/// Why certificates form no trust bundle.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TrustBundleError {
    /// The PEM contains something else.
    #[error(transparent)]
    Malformed(MalformedPem),
    /// There are no certificates. Clients would treat this as no bundle and trust the CAs of their system.
    #[error("trust bundle contains no certificates")]
    Empty,
    /// A certificate is not a CA or not self-signed: it is damaged or a cross certificate.
    #[error("trust bundle contains {0}, which is not a root CA or is damaged")]
    NotARoot(String),
    /// All certificates have expired.
    #[error("all certificates of the trust bundle have expired, the last one at {0}")]
    Expired(Timestamp),
    /// API servers would reject it as too large.
    #[error("trust bundle is too large: {0} base64 characters, limit {MAX_ENCODED_LENGTH}")]
    TooLong(usize),
}

impl TrustBundle {
    /// Creates the trust bundle with these certificates.
    ///
    /// # Errors
    ///
    /// If there are none or too many.
    pub fn new(certificates: impl IntoIterator<Item = Certificate>) -> Result<Self, TrustBundleError> {
        let mut certificates: Vec<_> = certificates.into_iter().collect();
        certificates.sort();
        certificates.dedup();
        if certificates.is_empty() {
            return Err(TrustBundleError::Empty);
        }
        let bundle = Self { certificates };
        let encoded = bundle.to_pem().len().div_ceil(3) * 4;
        if encoded > MAX_ENCODED_LENGTH {
            return Err(TrustBundleError::TooLong(encoded));
        }
        Ok(bundle)
    }

    /// Parses a trust bundle of Windlass, which contains only root CAs.
    ///
    /// # Errors
    ///
    /// If it contains anything else; the error lists all of it.
    pub fn from_pem(pem: &[u8]) -> Result<Self, TrustBundleError> {
        let certificates = pem::parse(pem).map_err(TrustBundleError::Malformed)?;
        let is_root = |root: &Certificate| root.is_authority() && root.is_signed_by(root);
        if let Some(other) = certificates.iter().find(|certificate| !is_root(certificate)) {
            return Err(TrustBundleError::NotARoot(other.to_string()));
        }
        Self::new(certificates)
    }

    /// Parses a foreign trust bundle as clients do: they skip text and other blocks, which are returned
    /// separately, and trust non-CA certificates themselves. Rejects private keys and input that clients
    /// cannot parse.
    ///
    /// # Errors
    ///
    /// If it must not be published; the error lists all problems.
    pub fn from_foreign_pem(pem: &[u8]) -> Result<(Self, Vec<UnexpectedBlock>), TrustBundleError> {
        let reading = pem::read(pem);
        if !reading.is_usable() {
            return Err(TrustBundleError::Malformed(MalformedPem(reading.problems)));
        }
        Ok((Self::new(reading.certificates)?, reading.problems))
    }

    /// Returns the canonical PEM, oldest certificate first. Equal bundles have equal bytes.
    pub fn to_pem(&self) -> String {
        self.certificates.iter().map(Certificate::to_pem).collect()
    }

    /// Returns the certificates, oldest first.
    pub fn certificates(&self) -> &[Certificate] {
        &self.certificates
    }

    /// Returns the bundle without expired certificates. Certificates that are not valid yet stay: they are
    /// trusted before they are used.
    ///
    /// # Errors
    ///
    /// If all certificates have expired.
    pub fn without_expired(&self, now: Timestamp) -> Result<Self, TrustBundleError> {
        let valid = |certificate: &&Certificate| !certificate.validity().is_over(now);
        let certificates: Vec<_> = self.certificates.iter().filter(valid).cloned().collect();
        if certificates.is_empty() {
            return Err(TrustBundleError::Expired(self.last_not_after()));
        }
        Ok(Self { certificates })
    }

    /// Returns when the last certificate expires.
    fn last_not_after(&self) -> Timestamp {
        self.certificates
            .iter()
            .map(Certificate::not_after)
            .fold(Timestamp::MIN, Timestamp::max)
    }
}
