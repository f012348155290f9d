//! The Secrets of a ServingCertificate after a year without an operator.

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::{SignedDuration, Timestamp};
use rcgen::KeyPair;
use serde_json::{Value, json};
use windlass_trust::{
    pki::{CertificateAuthority, Credentials, DnsNames, PrivateKey, Terms, Validity},
    rotation::{Ca, CaState, CertificateId, Digest, KeyId},
    trust_bundle::TrustBundle,
};

/// The `data` of both Secrets.
pub(super) struct ExpiredSecrets {
    /// The CA Secret.
    pub(super) authority: Value,
    /// The serving Secret.
    pub(super) serving: Value,
}

/// The generation of the newest CA.
pub(super) const GENERATION: i64 = 2;

const DAY: SignedDuration = SignedDuration::from_hours(24);

/// Returns what the operator would have issued a year ago, valid for a month.
pub(super) fn secrets(service: &str, namespace: &str) -> anyhow::Result<ExpiredSecrets> {
    let names = DnsNames::for_service(service, namespace, &[])?;
    let issued = Timestamp::from_second((Timestamp::now() - 365 * DAY).as_second())?;
    let validity = Validity {
        not_before: issued,
        not_after: issued + 30 * DAY,
    };
    let terms = || Terms {
        serial: rand::random(),
        now: issued,
        validity,
    };
    let key = || KeyPair::generate().map(PrivateKey::from);
    let current = CertificateAuthority::self_signed(&names, 1, key()?, &terms())?;
    let next = CertificateAuthority::self_signed(&names, 2, key()?, &terms())?;
    let leaf_key = key()?;
    let leaf = current.issue(&names, &leaf_key, &terms())?;
    let trust = TrustBundle::new([current.certificate().clone(), next.certificate().clone()])?;
    let authorities = CaState {
        current: Some(Ca {
            signs_since: Some(issued),
            ..authority(1, &current)
        }),
        next: Some(authority(2, &next)),
        generation: 2,
        ..CaState::default()
    };
    let encoded = |bytes: &[u8]| Value::from(STANDARD.encode(bytes));
    Ok(ExpiredSecrets {
        authority: json!({
            "state.json": encoded(&serde_json::to_vec(&authorities)?),
            "current.crt": encoded(current.certificate().to_pem().as_bytes()),
            "current.key": encoded(current.key().to_pem().as_bytes()),
            "next.crt": encoded(next.certificate().to_pem().as_bytes()),
            "next.key": encoded(next.key().to_pem().as_bytes()),
        }),
        serving: json!({
            "tls.key": encoded(leaf_key.to_pem().as_bytes()),
            "tls.crt": encoded(Credentials::new(leaf, Vec::new(), leaf_key)?.chain_pem().as_bytes()),
            "ca.crt": encoded(trust.to_pem().as_bytes()),
        }),
    })
}

fn authority(generation: u32, authority: &CertificateAuthority) -> Ca {
    let certificate = authority.certificate();
    let key_id = KeyId::from_identifier(certificate.subject_key_identifier().unwrap_or_default());
    Ca {
        generation,
        certificate: CertificateId {
            fingerprint: Digest(certificate.fingerprint()),
            key_id,
            issuer_key_id: key_id,
            validity: certificate.validity(),
        },
        signs_since: None,
        has_key: true,
        matches_spec: true,
    }
}
