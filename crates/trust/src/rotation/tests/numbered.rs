//! Certificates without keys, identified by numbers.

use std::convert::Infallible;

use crate::{
    pki::Validity,
    rotation::{CaTemplate, CertificateId, Digest, Issuer, KeyId},
};

/// Issues certificates with consecutive numbers.
pub(super) struct Numbered(pub(super) u8);

impl Issuer for Numbered {
    type Error = Infallible;

    fn authority(&mut self, template: &CaTemplate) -> Result<CertificateId, Infallible> {
        self.0 += 1;
        Ok(certificate(self.0, None, None, template.validity))
    }

    fn cross(
        &mut self,
        subject: &CertificateId,
        issuer: &CertificateId,
        validity: Validity,
    ) -> Result<CertificateId, Infallible> {
        self.0 += 1;
        let (key, issuer) = (subject.key_id, issuer.key_id);
        Ok(certificate(self.0, Some(key), Some(issuer), validity))
    }
}

/// Returns the certificate with that number and its own key, self-signed unless another issuer is given.
pub(super) fn certificate(
    number: u8,
    key: Option<KeyId>,
    issuer: Option<KeyId>,
    validity: Validity,
) -> CertificateId {
    let key_id = key.unwrap_or(Digest([number; 20]));
    CertificateId {
        fingerprint: Digest([number; 32]),
        key_id,
        issuer_key_id: issuer.unwrap_or(key_id),
        validity,
    }
}
