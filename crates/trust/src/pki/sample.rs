//! Keys and certificates for tests.

#![expect(
    clippy::unwrap_used,
    reason = "a test fails if its fixtures cannot be created"
)]

use std::sync::{
    LazyLock,
    atomic::{AtomicU8, Ordering},
};

use jiff::{SignedDuration, Timestamp};
use rcgen::KeyPair;
use rsa::pkcs8::{EncodePrivateKey, LineEnding};

use super::{CertificateAuthority, DnsNames, PrivateKey, Terms, Validity};

/// The current time in tests.
pub const NOW: Timestamp = Timestamp::constant(1_795_000_000, 0);

/// One day.
pub const DAY: SignedDuration = SignedDuration::from_hours(24);

/// One year.
pub const YEAR: SignedDuration = SignedDuration::from_hours(24 * 365);

/// The names of the Service `hook` in the namespace `system`.
pub fn names() -> DnsNames {
    DnsNames::for_service("hook", "system", &[]).unwrap()
}

/// Creates a P-256 key.
pub fn key() -> PrivateKey {
    KeyPair::generate().unwrap().into()
}

/// Returns one of five RSA keys, always the same for an index, because generating them is slow.
pub fn rsa_key_pair(index: usize) -> KeyPair {
    static KEYS: [LazyLock<String>; 5] = [const { LazyLock::new(generate_rsa) }; 5];
    KeyPair::from_pem(&KEYS[index]).unwrap()
}

fn generate_rsa() -> String {
    let key = rsa::RsaPrivateKey::new(&mut rsa::rand_core::OsRng, 2048).unwrap();
    key.to_pkcs8_pem(LineEnding::LF).unwrap().to_string()
}

/// Returns terms of issuance at [`NOW`] with a unique serial number.
pub fn terms(lifetime: SignedDuration) -> Terms {
    static NEXT: AtomicU8 = AtomicU8::new(0);
    Terms {
        serial: [NEXT.fetch_add(1, Ordering::Relaxed).max(1); 16],
        now: NOW,
        validity: valid_for(lifetime),
    }
}

/// Returns a validity from ten minutes ago until `lifetime` from now.
pub fn valid_for(lifetime: SignedDuration) -> Validity {
    Validity {
        not_before: NOW - SignedDuration::from_mins(10),
        not_after: NOW + lifetime,
    }
}

/// Creates a CA for [`names`] that is valid for a year.
pub fn authority(generation: u32) -> CertificateAuthority {
    CertificateAuthority::self_signed(&names(), generation, key(), &terms(YEAR)).unwrap()
}
