//! CA certificates in one canonical form.

use jiff::Timestamp;
use thiserror::Error;

use crate::pki::{
    Certificate,
    pem::{self, MalformedPem, UnexpectedBlock},
};

/// The most characters that a `caBundle` may have in JSON, where it is base64: ExtensionConfig's schema, the tightest
/// of all kinds of targets.
pub const LONGEST_ENCODED: usize = 51_200;

/// CA certificates, each once, in an order that depends on nothing but themselves.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TrustBundle {
    pub(super) certificates: Vec<Certificate>,
}

/// Why certificates make no trust bundle.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TrustBundleError {
    /// There is something in it that does not belong there.
    #[error(transparent)]
    Malformed(MalformedPem),
    /// There is nothing in it: clients would take it for no bundle at all, and trust the CAs of their system.
    #[error("trust bundle contains no certificates")]
    Empty,
    /// There is a certificate in it that is not a CA, or was not signed by itself: damaged, or a cross certificate.
    #[error("trust bundle contains {0}, which is not a root CA or is damaged")]
    NotARoot(String),
    /// Nothing in it is valid any more.
    #[error("all certificates of the trust bundle have expired, the last one at {0}")]
    Expired(Timestamp),
    /// API servers would refuse it.
    #[error("trust bundle is too large: {0} base64 characters, limit {LONGEST_ENCODED}")]
    TooLong(usize),
}

// === impl TrustBundle ===

impl TrustBundle {
    /// The set of these certificates.
    ///
    /// # Errors
    ///
    /// When there is none, or there are too many.
    pub fn new(certificates: impl IntoIterator<Item = Certificate>) -> Result<Self, TrustBundleError> {
        let mut certificates: Vec<_> = certificates.into_iter().collect();
        certificates.sort();
        certificates.dedup();
        if certificates.is_empty() {
            return Err(TrustBundleError::Empty);
        }
        let bundle = Self { certificates };
        let encoded = bundle.to_pem().len().div_ceil(3) * 4;
        if encoded > LONGEST_ENCODED {
            return Err(TrustBundleError::TooLong(encoded));
        }
        Ok(bundle)
    }

    /// Reads a trust bundle of our own: root CAs and nothing else.
    ///
    /// # Errors
    ///
    /// When anything else is in it; all of it is named.
    pub fn from_pem(pem: &[u8]) -> Result<Self, TrustBundleError> {
        let certificates = pem::parse(pem).map_err(TrustBundleError::Malformed)?;
        let is_root = |root: &Certificate| root.is_authority() && root.is_signed_by(root);
        if let Some(other) = certificates.iter().find(|certificate| !is_root(certificate)) {
            return Err(TrustBundleError::NotARoot(other.to_string()));
        }
        Self::new(certificates)
    }

    /// Reads somebody else's trust bundle as clients do: they skip text and other blocks, which are returned beside,
    /// and trust a certificate that is not a CA by itself. Whatever they would choke on, and a private key, is refused.
    ///
    /// # Errors
    ///
    /// When it must not be published; everything that is wrong with it is named.
    pub fn from_foreign_pem(pem: &[u8]) -> Result<(Self, Vec<UnexpectedBlock>), TrustBundleError> {
        let reading = pem::read(pem);
        if !reading.is_usable() {
            return Err(TrustBundleError::Malformed(MalformedPem(reading.problems)));
        }
        Ok((Self::new(reading.certificates)?, reading.problems))
    }

    /// The canonical bytes: equal bundles have equal ones. The oldest certificate comes first.
    pub fn to_pem(&self) -> String {
        self.certificates.iter().map(Certificate::to_pem).collect()
    }

    /// The certificates, the oldest first.
    pub fn certificates(&self) -> &[Certificate] {
        &self.certificates
    }

    /// What has not ended at `now`. What is not valid yet stays: it is trusted before it is used.
    ///
    /// # Errors
    ///
    /// When nothing is left.
    pub fn without_expired(&self, now: Timestamp) -> Result<Self, TrustBundleError> {
        let valid = |certificate: &&Certificate| !certificate.validity().is_over(now);
        let certificates: Vec<_> = self.certificates.iter().filter(valid).cloned().collect();
        if certificates.is_empty() {
            return Err(TrustBundleError::Expired(self.last_not_after()));
        }
        Ok(Self { certificates })
    }

    /// When the last of its certificates ends.
    fn last_not_after(&self) -> Timestamp {
        self.certificates
            .iter()
            .map(Certificate::not_after)
            .fold(Timestamp::MIN, Timestamp::max)
    }
}
