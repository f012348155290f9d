//! Certificates as a rotation sees them: who signed which, and until when. PEM is handled in
//! [`pki`](crate::pki).

use std::{
    collections::{BTreeSet, btree_set},
    fmt,
    str::FromStr,
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use crate::pki::Validity;

/// An identifier of `N` bytes, written in hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest<const N: usize>(pub [u8; N]);

/// SHA-256 of a certificate's DER.
pub type Fingerprint = Digest<32>;

/// A subject or authority key identifier (RFC 5280, 4.2.1.1 and 4.2.1.2).
pub type KeyId = Digest<20>;

/// A text is not a [`Digest`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is not {expected} bytes in hexadecimal")]
pub struct ParseDigestError {
    text: String,
    expected: usize,
}

/// A certificate without names and keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CertificateId {
    /// SHA-256 of the certificate, which identifies it.
    pub fingerprint: Fingerprint,
    /// Identifier of the certified key.
    pub key_id: KeyId,
    /// Identifier of the key that signed the certificate; for a root, its own key.
    pub issuer_key_id: KeyId,
    /// When the certificate is valid.
    #[serde(flatten)]
    pub validity: Validity,
}

/// What a server sends: its certificate and, while the previous CA is valid, the cross certificate for
/// clients that know only the previous CA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Chain {
    /// The server's own certificate.
    pub leaf: CertificateId,
    /// The certificate of the key that signed `leaf`, signed by the previous CA.
    pub cross: Option<CertificateId>,
}

/// A set of CA certificates, ordered by fingerprint.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TrustSet(BTreeSet<CertificateId>);

impl KeyId {
    /// Converts a key identifier. One that is not 20 bytes long is hashed to that length.
    pub fn from_identifier(identifier: &[u8]) -> Self {
        if let Ok(bytes) = identifier.try_into() {
            return Self(bytes);
        }
        let hash = Sha256::digest(identifier);
        let mut bytes = [0; 20];
        bytes.copy_from_slice(&hash[..20]);
        Self(bytes)
    }
}

impl<const N: usize> fmt::Display for Digest<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl<const N: usize> fmt::Debug for Digest<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<const N: usize> FromStr for Digest<N> {
    type Err = ParseDigestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = || ParseDigestError {
            text: text.to_owned(),
            expected: N,
        };
        if text.len() != 2 * N || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(refused());
        }
        let mut bytes = [0; N];
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digits = str::from_utf8(digits).map_err(|_| refused())?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| refused())?;
        }
        Ok(Self(bytes))
    }
}

impl<const N: usize> TryFrom<String> for Digest<N> {
    type Error = ParseDigestError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl<const N: usize> From<Digest<N>> for String {
    fn from(digest: Digest<N>) -> Self {
        digest.to_string()
    }
}

impl CertificateId {
    /// Reports whether the certificate is valid at `moment`.
    pub fn is_valid_at(&self, moment: Timestamp) -> bool {
        self.validity.contains(moment)
    }

    /// Reports whether the certificate has expired at `moment`. Used where a certificate that is not valid
    /// yet is acceptable: Windlass created it, so the wall clock must have been set back.
    pub fn has_ended_at(&self, moment: Timestamp) -> bool {
        self.validity.is_over(moment)
    }

    /// Reports whether the key of that CA signed it.
    pub fn is_signed_by(&self, authority: &Self) -> bool {
        self.issuer_key_id == authority.key_id
    }
}

impl TrustSet {
    /// Reports whether the certificate is in the set.
    pub fn contains(&self, authority: &CertificateId) -> bool {
        self.0.contains(authority)
    }

    /// Reports whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the certificates, ordered by fingerprint.
    pub fn iter(&self) -> btree_set::Iter<'_, CertificateId> {
        self.0.iter()
    }

    /// Reports whether a client with this trust bundle verifies that chain; only the leaf may have expired.
    pub fn verifies(&self, chain: &Chain, moment: Timestamp) -> bool {
        let trusts = |key_id: KeyId| {
            self.0
                .iter()
                .any(|authority| authority.key_id == key_id && !authority.has_ended_at(moment))
        };
        if trusts(chain.leaf.issuer_key_id) {
            return true;
        }
        chain.cross.is_some_and(|cross| {
            cross.key_id == chain.leaf.issuer_key_id
                && !cross.has_ended_at(moment)
                && trusts(cross.issuer_key_id)
        })
    }
}

impl FromIterator<CertificateId> for TrustSet {
    fn from_iter<I: IntoIterator<Item = CertificateId>>(certificates: I) -> Self {
        Self(certificates.into_iter().collect())
    }
}

impl<'a> IntoIterator for &'a TrustSet {
    type Item = &'a CertificateId;
    type IntoIter = btree_set::Iter<'a, CertificateId>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
