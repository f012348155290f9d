//! Makes CAs and cross certificates for a change of the CA Secret.

use thiserror::Error;
use windlass_cluster::keys;
use windlass_trust::{
    pki::{CertificateAuthority, DnsNames, IssueError, PrivateKey, Terms, Validity},
    rotation::{CaChange, CaTemplate, CertificateId, Issuer},
};

use super::certificates::{CertificateStore, UnknownCertificate, summary};

/// Makes certificates.
pub(super) struct Mint<'a> {
    /// The names that CAs may sign for.
    pub(super) names: &'a DnsNames,
    /// The time.
    pub(super) now: jiff::Timestamp,
    /// A fresh key for each CA that is to be made.
    pub(super) keys: Vec<PrivateKey>,
    /// The CAs whose keys are at hand; new ones are added.
    pub(super) signers: Vec<CertificateAuthority>,
    /// What was read; what is made is added.
    pub(super) certificates: &'a mut CertificateStore,
}

/// Why a certificate was not made.
#[derive(Debug, Error)]
pub enum IssueCaError {
    /// It could not be issued.
    #[error(transparent)]
    Issue(#[from] IssueError),
    /// A certificate that is needed for it is missing.
    #[error(transparent)]
    Unknown(#[from] UnknownCertificate),
    /// A key that is needed for it is missing.
    #[error("the key that is needed to sign is not at hand")]
    NoKey,
}

// === impl Mint ===

impl Issuer for Mint<'_> {
    type Error = IssueCaError;

    fn authority(&mut self, template: &CaTemplate) -> Result<CertificateId, IssueCaError> {
        let key = self.keys.pop().ok_or(IssueCaError::NoKey)?;
        let terms = terms(self.now, template.validity);
        let authority = CertificateAuthority::self_signed(self.names, template.generation, key, &terms)?;
        let summary = self.certificates.learn(authority.certificate());
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
        let cross = issuer.cross_sign(subject, &terms(self.now, validity))?;
        Ok(self.certificates.learn(&cross))
    }
}

/// The terms of a certificate with a new serial number.
pub(super) fn terms(now: jiff::Timestamp, validity: Validity) -> Terms {
    Terms {
        serial: keys::serial(),
        now,
        validity,
    }
}

/// How many CAs a change makes.
pub(super) fn new_authorities(change: &CaChange) -> usize {
    match change {
        CaChange::Found { current, .. } => 1 + usize::from(current.is_some()),
        CaChange::IssueNext(_) | CaChange::Retire { next: Some(_), .. } => 1,
        _ => 0,
    }
}
