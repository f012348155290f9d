//! What a rotation needs to know of certificates: who signed whom, and until when. PEM stays with [`pki`](crate::pki).

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

/// So many bytes that identify something, written in hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest<const N: usize>(pub [u8; N]);

/// The SHA-256 of a certificate's DER.
pub type Fingerprint = Digest<32>;

/// What a subject or authority key identifier says (RFC 5280, 4.2.1.1 and 4.2.1.2).
pub type KeyId = Digest<20>;

/// Why a text is not a [`Digest`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is not {expected} bytes in hexadecimal")]
pub struct ParseDigestError {
    text: String,
    expected: usize,
}

/// A certificate, without its names and its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CertificateId {
    /// Which certificate it is.
    pub fingerprint: Fingerprint,
    /// Whose key it holds.
    pub key_id: KeyId,
    /// Whose key signed it; its own, if it is a root.
    pub issuer_key_id: KeyId,
    /// From when until when it is valid.
    #[serde(flatten)]
    pub validity: Validity,
}

/// What a server sends: a serving certificate and, while the CA before is valid, the cross certificate that lets a
/// client that knows only that one verify it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Chain {
    /// The server's own certificate.
    pub leaf: CertificateId,
    /// The certificate of the key that signed `leaf`, signed by the CA before.
    pub cross: Option<CertificateId>,
}

/// The CA certificates that something trusts, in the order of their fingerprints.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TrustSet(BTreeSet<CertificateId>);

// === impl Digest ===

impl KeyId {
    /// An identifier as a certificate carries it. One of another length than SHA-1's is hashed to that length.
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

// === impl Certificate ===

impl CertificateId {
    /// Whether it holds at that moment.
    pub fn is_valid_at(&self, moment: Timestamp) -> bool {
        self.validity.contains(moment)
    }

    /// Whether its last moment is over. Where a certificate that does not hold yet is as good as one that does, this is
    /// asked: it was made by us, so the calendar must have jumped back.
    pub fn has_ended_at(&self, moment: Timestamp) -> bool {
        self.validity.is_over(moment)
    }

    /// Whether the key of that CA signed it.
    pub fn is_signed_by(&self, authority: &Self) -> bool {
        self.issuer_key_id == authority.key_id
    }
}

// === impl TrustBundle ===

impl TrustSet {
    /// Whether the certificate is in it.
    pub fn contains(&self, authority: &CertificateId) -> bool {
        self.0.contains(authority)
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The certificates, in the order of their fingerprints.
    pub fn iter(&self) -> btree_set::Iter<'_, CertificateId> {
        self.0.iter()
    }

    /// Whether a client that trusts this verifies that chain, if none of its certificates but the leaf may have ended.
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
