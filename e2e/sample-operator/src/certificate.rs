//! The certificate that is served on demand though nobody trusts it.

use rustls::{crypto::ring, pki_types::PrivateKeyDer, sign::CertifiedKey};
use webhook_transport::LiveCertificate;

/// A certificate of another name, signed by nobody.
pub(crate) fn wrong() -> anyhow::Result<LiveCertificate> {
    let wrong = rcgen::generate_simple_self_signed(["wrong.example.com".to_owned()])?;
    let key = PrivateKeyDer::try_from(wrong.signing_key.serialize_der()).map_err(anyhow::Error::msg)?;
    let certified = CertifiedKey::from_der(vec![wrong.cert.der().clone()], key, &ring::default_provider())?;
    Ok(LiveCertificate::fixed(certified))
}
