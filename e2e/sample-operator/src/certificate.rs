//! An untrusted certificate for the fault `wrong-certificate`.

use rustls::{crypto::ring, pki_types::PrivateKeyDer, sign::CertifiedKey};
use webhook_transport::LiveCertificate;

/// Creates a self-signed certificate for another name.
pub(crate) fn untrusted() -> anyhow::Result<LiveCertificate> {
    let wrong = rcgen::generate_simple_self_signed(["wrong.example.com".to_owned()])?;
    let key = PrivateKeyDer::try_from(wrong.signing_key.serialize_der()).map_err(anyhow::Error::msg)?;
    let certified = CertifiedKey::from_der(vec![wrong.cert.der().clone()], key, &ring::default_provider())?;
    Ok(LiveCertificate::fixed(certified))
}
