//! Private keys, which no log, error or `Debug` output shows.

use std::fmt;

use rcgen::{KeyPair, PublicKeyData};
use thiserror::Error;
use x509_parser::{prelude::FromDer, public_key::PublicKey, x509::SubjectPublicKeyInfo};
use zeroize::{Zeroize, Zeroizing};

use super::Certificate;

/// A private key with its public key. Its memory is wiped on drop, as far as the libraries that use it allow.
pub struct PrivateKey(KeyPair);

/// Algorithm and size of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyAlgorithm {
    /// ECDSA on a NIST curve of this many bits.
    Ecdsa(usize),
    /// RSA with a modulus of this many bits.
    Rsa(usize),
    /// An unsupported algorithm.
    Other,
}

/// A private key cannot be parsed. Contains nothing of the input, which might be a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "not a PKCS#8 private key (PEM block PRIVATE KEY) of a supported algorithm (ECDSA P-256, P-384; RSA from 2048 bits)"
)]
pub struct ReadPrivateKeyError;

impl PrivateKey {
    /// Parses PEM with one PKCS#8 block `PRIVATE KEY`.
    ///
    /// # Errors
    ///
    /// If the input is anything else.
    pub fn from_pem(pem: &[u8]) -> Result<Self, ReadPrivateKeyError> {
        let pem = std::str::from_utf8(pem).map_err(|_| ReadPrivateKeyError)?;
        // The PEM parser accepts any block and skips leading text.
        if !pem.starts_with("-----BEGIN PRIVATE KEY-----") {
            return Err(ReadPrivateKeyError);
        }
        KeyPair::from_pem(pem).map(Self).map_err(|_| ReadPrivateKeyError)
    }

    /// Returns PKCS#8 in PEM, the only format that kubert and others read (no SEC1).
    pub fn to_pem(&self) -> Zeroizing<String> {
        Zeroizing::new(self.0.serialize_pem())
    }

    /// Reports whether `certificate` contains the public key of this private key.
    pub fn belongs_to(&self, certificate: &Certificate) -> bool {
        self.0.subject_public_key_info() == certificate.public_key()
    }

    /// Returns the algorithm of the key.
    pub fn algorithm(&self) -> KeyAlgorithm {
        let der = self.public_key();
        match SubjectPublicKeyInfo::from_der(&der).map(|(_, info)| info.parsed().map(KeyAlgorithm::from)) {
            Ok(Ok(algorithm)) => algorithm,
            _ => KeyAlgorithm::Other,
        }
    }

    /// Returns its public key in DER (SubjectPublicKeyInfo).
    pub fn public_key(&self) -> Vec<u8> {
        self.0.subject_public_key_info()
    }

    pub(super) fn pair(&self) -> &KeyPair {
        &self.0
    }
}

impl From<KeyPair> for PrivateKey {
    fn from(pair: KeyPair) -> Self {
        Self(pair)
    }
}

impl Drop for PrivateKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey(redacted)")
    }
}

impl From<PublicKey<'_>> for KeyAlgorithm {
    fn from(key: PublicKey<'_>) -> Self {
        match &key {
            PublicKey::EC(_) => Self::Ecdsa(key.key_size()),
            PublicKey::RSA(_) => Self::Rsa(key.key_size()),
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pki::sample;

    #[test]
    fn a_key_round_trips_as_pkcs8() {
        for (pair, algorithm) in [
            (KeyPair::generate().unwrap(), KeyAlgorithm::Ecdsa(256)),
            (sample::rsa_key_pair(0), KeyAlgorithm::Rsa(2048)),
        ] {
            let key = PrivateKey::from(pair);
            assert_eq!(key.algorithm(), algorithm);
            let pem = key.to_pem();
            let back = PrivateKey::from_pem(pem.as_bytes()).unwrap();
            assert_eq!(back.public_key(), key.public_key());
            assert_eq!(back.to_pem(), pem);
        }
    }

    #[test]
    fn debug_output_and_errors_hide_the_key() {
        let key = PrivateKey::from(KeyPair::generate().unwrap());
        assert_eq!(format!("{key:?}"), "PrivateKey(redacted)");
        let pem = key.to_pem();
        let secret = pem.lines().nth(1).unwrap();
        let cut = &pem[..pem.len() / 2];
        let error = PrivateKey::from_pem(cut.as_bytes()).unwrap_err();
        assert!(!format!("{error} {error:?}").contains(&secret[..8]));
    }

    #[test]
    fn other_keys_are_rejected() {
        let pem = KeyPair::generate().unwrap().serialize_pem();
        for wrong in [
            String::new(),
            "garbage".into(),
            pem.replace("PRIVATE KEY", "EC PRIVATE KEY"),
            pem.replace("PRIVATE KEY", "CERTIFICATE"),
            format!("junk\n{pem}"),
            pem.replace('M', "N"),
        ] {
            assert_eq!(
                PrivateKey::from_pem(wrong.as_bytes()).err(),
                Some(ReadPrivateKeyError)
            );
        }
        assert!(PrivateKey::from_pem(&[0xff, 0xfe]).is_err());
    }
}
