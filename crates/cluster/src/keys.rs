//! Random key pairs and serial numbers, which the pure crates take as arguments.

use rand::RngCore;
use rcgen::KeyPair;
use rsa::pkcs8::{EncodePrivateKey, LineEnding};
use thiserror::Error;
use windlass_api::{PrivateKeyAlgorithm, PrivateKeySpec};
use windlass_trust::pki::KeyAlgorithm;

/// Why no key could be generated.
#[derive(Debug, Error)]
pub enum GenerateKeyError {
    /// The elliptic curve generator failed, or the key cannot be parsed.
    #[error("cannot generate a key")]
    Generate(#[from] rcgen::Error),
    /// The RSA generator failed.
    #[error("cannot generate an RSA key")]
    GenerateRsa(#[from] rsa::Error),
    /// The RSA key cannot be encoded as PKCS#8.
    #[error("cannot encode an RSA key")]
    Encode(#[from] rsa::pkcs8::Error),
    /// The generating thread has terminated.
    #[error("key generation was interrupted")]
    Interrupted(#[from] tokio::task::JoinError),
}

/// The default size of RSA keys in bits.
const RSA_BITS: u32 = 2048;

/// Generates a key pair. RSA keys take long, so they are generated on a separate thread.
///
/// # Errors
///
/// When the generator fails.
pub async fn generate(key: &PrivateKeySpec) -> Result<KeyPair, GenerateKeyError> {
    match key.algorithm {
        PrivateKeyAlgorithm::Ecdsa => Ok(KeyPair::generate()?),
        PrivateKeyAlgorithm::Rsa => {
            let bits = key.size.unwrap_or(RSA_BITS);
            tokio::task::spawn_blocking(move || generate_rsa(bits)).await?
        }
    }
}

/// Returns the algorithm of a key spec.
pub fn algorithm(key: &PrivateKeySpec) -> KeyAlgorithm {
    match key.algorithm {
        PrivateKeyAlgorithm::Ecdsa => KeyAlgorithm::Ecdsa(256),
        PrivateKeyAlgorithm::Rsa => KeyAlgorithm::Rsa(key.size.unwrap_or(RSA_BITS) as usize),
    }
}

/// Returns a random serial number: 16 bytes, positive, never 0.
pub fn serial() -> [u8; 16] {
    let mut serial = [0; 16];
    rand::rng().fill_bytes(&mut serial);
    // RFC 5280 §4.1.2.2: positive. The second bit is set, so that all encodings have the same length.
    serial[0] = (serial[0] & 0x7f) | 0x40;
    serial
}

fn generate_rsa(bits: u32) -> Result<KeyPair, GenerateKeyError> {
    let mut rng = rsa::rand_core::OsRng;
    let key = rsa::RsaPrivateKey::new(&mut rng, bits as usize)?;
    let pem = key.to_pkcs8_pem(LineEnding::LF)?;
    Ok(KeyPair::from_pem(&pem)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn generated_keys_have_the_requested_algorithm() {
        let asks_for_ecdsa = PrivateKeySpec::default();
        let ecdsa = generate(&asks_for_ecdsa).await.unwrap();
        assert_eq!(ecdsa.algorithm(), &rcgen::PKCS_ECDSA_P256_SHA256);
        let asks_for_rsa = PrivateKeySpec {
            algorithm: PrivateKeyAlgorithm::Rsa,
            size: None,
        };
        let rsa = generate(&asks_for_rsa).await.unwrap();
        assert_eq!(rsa.algorithm(), &rcgen::PKCS_RSA_SHA256);
        let algorithms = [ecdsa, rsa].map(|key| windlass_trust::pki::PrivateKey::from(key).algorithm());
        assert_eq!(algorithms, [algorithm(&asks_for_ecdsa), algorithm(&asks_for_rsa)]);
    }

    #[test]
    fn serials_are_positive_and_differ() {
        let (one, other) = (serial(), serial());
        assert_ne!(one, other);
        assert_eq!(one[0] & 0x80, 0);
        assert_ne!(one[0], 0);
    }
}
