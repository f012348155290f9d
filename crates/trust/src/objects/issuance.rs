//! Creates CAs and cross certificates for a change of the CA Secret.

use thiserror::Error;

use super::certificate_store::{CertificateStore, UnknownCertificate, summary};
use crate::{
    pki::{CertificateAuthority, DnsNames, IssueError, PrivateKey, Terms, Validity},
    rotation::{CaChange, CaTemplate, CertificateId, Issuer},
};

/// Creates the certificates of a change; see [`CaState::with_change`](crate::rotation::CaState::with_change).
pub struct Mint<'a> {
    /// The names that the CAs may sign for.
    pub names: &'a DnsNames,
    /// The time of issuance.
    pub now: jiff::Timestamp,
    /// One new key for each CA to create.
    pub keys: Vec<PrivateKey>,
    /// Returns a serial number: 16 bytes, positive and unique.
    pub serial: fn() -> [u8; 16],
    /// The CAs with known keys; new ones are added.
    pub signers: Vec<CertificateAuthority>,
    /// The loaded certificates; new ones are added.
    pub certificates: &'a mut CertificateStore,
}

/// Why a certificate was not created.
#[derive(Debug, Error)]
pub enum IssueCaError {
    /// The certificate could not be issued.
    #[error(transparent)]
    Issue(#[from] IssueError),
    /// A certificate that it requires is missing.
    #[error(transparent)]
    Unknown(#[from] UnknownCertificate),
    /// A key that it requires is missing.
    #[error("the signing CA's private key is missing")]
    NoKey,
}

impl Mint<'_> {
    /// Returns the terms of a certificate with a new serial number.
    fn terms(&self, validity: Validity) -> Terms {
        Terms {
            serial: (self.serial)(),
            now: self.now,
            validity,
        }
    }
}

impl Issuer for Mint<'_> {
    type Error = IssueCaError;

    fn authority(&mut self, template: &CaTemplate) -> Result<CertificateId, IssueCaError> {
        let key = self.keys.pop().ok_or(IssueCaError::NoKey)?;
        let terms = self.terms(template.validity);
        let authority = CertificateAuthority::self_signed(self.names, template.generation, key, &terms)?;
        let summary = self.certificates.insert(authority.certificate());
        self.signers.push(authority);
        Ok(summary)
    }

    fn cross(
        &mut self,
        subject: &CertificateId,
        issuer: &CertificateId,
        validity: Validity,
    ) -> Result<CertificateId, IssueCaError> {
        let issuer = self
            .signers
            .iter()
            .find(|signer| summary(signer.certificate()) == *issuer)
            .ok_or(IssueCaError::NoKey)?;
        let subject = self.certificates.find(subject)?;
        let cross = issuer.cross_sign(subject, &self.terms(validity))?;
        Ok(self.certificates.insert(&cross))
    }
}

/// Returns how many CAs a change creates, which is the number of new keys that [`Mint`] needs.
pub fn new_authorities(change: &CaChange) -> usize {
    match change {
        CaChange::Create { current, .. } => 1 + usize::from(current.is_some()),
        CaChange::IssueNext(_) | CaChange::Retire { next: Some(_), .. } => 1,
        _ => 0,
    }
}
