//! Certificates as a rotation sees them, and the way back from there to their bytes.

use std::collections::HashMap;

use thiserror::Error;

use crate::{
    pki,
    rotation::{self, Digest, Fingerprint, KeyId},
    trust_bundle::{self, TrustBundleError},
};

/// Every certificate that was read.
#[derive(Clone, Debug, Default)]
pub struct CertificateStore {
    certificates: HashMap<Fingerprint, pki::Certificate>,
    /// What the texts of CA bundles say.
    bundles: HashMap<String, Option<rotation::TrustSet>>,
}

/// A plan names a certificate that was not read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("certificate {0} was not loaded")]
pub struct UnknownCertificate(
    /// SHA-256 of its DER.
    pub Fingerprint,
);

/// Why a trust bundle cannot be written.
#[derive(Debug, Error)]
pub enum WriteBundleError {
    /// One of its certificates was not read.
    #[error(transparent)]
    Unknown(#[from] UnknownCertificate),
    /// It must not be published.
    #[error("refusing to publish the trust bundle")]
    Bundle(#[from] TrustBundleError),
}

/// The key that signed a certificate which does not say, or whose word is wrong.
const NOBODY: KeyId = Digest([0; 20]);

// === impl CertificateStore ===

impl CertificateStore {
    /// Keeps a certificate that is known to be what it says: a CA of ours, or one that targets trust.
    pub fn learn(&mut self, certificate: &pki::Certificate) -> rotation::CertificateId {
        let summary = summary(certificate);
        self.certificates.insert(summary.fingerprint, certificate.clone());
        summary
    }

    /// What a CA bundle says, which is only read where the same text was not read before.
    pub(super) fn learn_bundle(
        &mut self,
        text: &str,
        read: impl FnOnce(&mut Self) -> Option<rotation::TrustSet>,
    ) -> Option<rotation::TrustSet> {
        if let Some(known) = self.bundles.get(text) {
            return known.clone();
        }
        let bundle = read(self);
        self.bundles.insert(text.to_owned(), bundle.clone());
        bundle
    }

    /// How many different CA bundles of targets were read.
    pub fn bundles_read(&self) -> usize {
        self.bundles.len()
    }

    /// Of all that was read, no more than the certificates of a trust bundle.
    #[must_use]
    pub fn only(&self, bundle: &rotation::TrustSet) -> Self {
        let known = bundle.iter().filter_map(|certificate| {
            let known = self.certificates.get(&certificate.fingerprint)?;
            Some((certificate.fingerprint, known.clone()))
        });
        Self {
            certificates: known.collect(),
            bundles: HashMap::new(),
        }
    }

    /// Keeps a certificate that somebody else presents. Its word on who signed it is not taken where the CA is known.
    pub fn learn_presented(&mut self, certificate: &pki::Certificate) -> rotation::CertificateId {
        let mut summary = self.learn(certificate);
        let mut named = self
            .certificates
            .values()
            .filter(|issuer| issuer.is_authority() && key_id(issuer) == summary.issuer_key_id)
            .peekable();
        if named.peek().is_some() && !named.any(|issuer| certificate.is_signed_by(issuer)) {
            summary.issuer_key_id = NOBODY;
        }
        summary
    }

    /// The certificate itself.
    ///
    /// # Errors
    ///
    /// When it was not read.
    pub fn find(
        &self,
        certificate: &rotation::CertificateId,
    ) -> Result<&pki::Certificate, UnknownCertificate> {
        self.certificates
            .get(&certificate.fingerprint)
            .ok_or(UnknownCertificate(certificate.fingerprint))
    }

    /// The certificates of a trust bundle themselves.
    ///
    /// # Errors
    ///
    /// When one was not read, or they make no trust bundle that may be published.
    pub fn trust_bundle(
        &self,
        bundle: &rotation::TrustSet,
    ) -> Result<trust_bundle::TrustBundle, WriteBundleError> {
        let certificates = bundle.iter().map(|certificate| self.find(certificate).cloned());
        let certificates = certificates.collect::<Result<Vec<_>, _>>()?;
        Ok(trust_bundle::TrustBundle::new(certificates)?)
    }
}

/// A certificate as a rotation sees it.
pub fn summary(certificate: &pki::Certificate) -> rotation::CertificateId {
    let key_id = key_id(certificate);
    let issuer_key_id = match certificate.authority_key_identifier() {
        Some(identifier) => KeyId::from_identifier(identifier),
        None if certificate.is_signed_by(certificate) => key_id,
        None => NOBODY,
    };
    rotation::CertificateId {
        fingerprint: Digest(certificate.fingerprint()),
        key_id,
        issuer_key_id,
        validity: certificate.validity(),
    }
}

/// A key without an identifier is known by the hash of itself.
fn key_id(certificate: &pki::Certificate) -> KeyId {
    let identifier = certificate.subject_key_identifier();
    KeyId::from_identifier(identifier.unwrap_or(certificate.public_key()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pki::sample;

    #[test]
    fn a_leaf_is_known_to_be_signed_by_its_ca() {
        let authority = sample::authority(1);
        let leaf = authority
            .issue(&sample::names(), &sample::key(), &sample::terms(sample::DAY))
            .unwrap();
        let mut certificates = CertificateStore::default();
        let root = certificates.learn(authority.certificate());
        assert_eq!(root.issuer_key_id, root.key_id);
        assert!(certificates.learn_presented(&leaf).is_signed_by(&root));
        assert_eq!(certificates.find(&root), Ok(authority.certificate()));
        let bundle = [root].into_iter().collect();
        let written = certificates.trust_bundle(&bundle).unwrap();
        assert_eq!(written.certificates(), [authority.certificate().clone()]);
    }

    #[test]
    fn a_leaf_that_only_claims_to_be_signed_by_a_ca_is_nobodys() {
        let authority = sample::authority(1);
        let mut pretender = rcgen::CertificateParams::default();
        let identifier = authority.certificate().subject_key_identifier().unwrap();
        pretender.key_identifier_method = rcgen::KeyIdMethod::PreSpecified(identifier.to_vec());
        let pretender = rcgen::Issuer::new(pretender, rcgen::KeyPair::generate().unwrap());
        let mut leaf = rcgen::CertificateParams::new(["hook.system.svc".to_owned()]).unwrap();
        leaf.use_authority_key_identifier_extension = true;
        let leaf = leaf
            .signed_by(&rcgen::KeyPair::generate().unwrap(), &pretender)
            .unwrap();
        let leaf = pki::Certificate::from_der(leaf.der().to_vec()).unwrap();
        let mut certificates = CertificateStore::default();
        assert!(
            certificates
                .learn_presented(&leaf)
                .is_signed_by(&summary(authority.certificate()))
        );
        let root = certificates.learn(authority.certificate());
        assert!(!certificates.learn_presented(&leaf).is_signed_by(&root));
    }
}
