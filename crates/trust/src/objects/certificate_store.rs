//! Maps the certificate identifiers that a rotation works with to the certificates themselves.

use std::collections::HashMap;

use thiserror::Error;

use crate::{
    pki,
    rotation::{self, Digest, Fingerprint, KeyId},
    trust_bundle::{self, TrustBundleError},
};

/// All certificates that were loaded.
#[derive(Clone, Debug, Default)]
pub struct CertificateStore {
    certificates: HashMap<Fingerprint, pki::Certificate>,
    /// Parsed CA bundles by their text.
    bundles: HashMap<String, Option<rotation::TrustSet>>,
}

/// A plan refers to a certificate that was not loaded.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("certificate {0} was not loaded")]
pub struct UnknownCertificate(
    /// SHA-256 of the certificate in DER.
    pub Fingerprint,
);

/// Why a trust bundle cannot be written.
#[derive(Debug, Error)]
pub enum WriteBundleError {
    /// A certificate was not loaded.
    #[error(transparent)]
    Unknown(#[from] UnknownCertificate),
    /// The certificates must not be published.
    #[error("refusing to publish the trust bundle")]
    Bundle(#[from] TrustBundleError),
}

/// Key identifier for the unknown signer of a certificate that names no issuer key, or a wrong one.
const UNKNOWN_KEY: KeyId = Digest([0; 20]);

impl CertificateStore {
    /// Adds a certificate that is known to be authentic: a CA of Windlass, or one that targets trust.
    pub fn insert(&mut self, certificate: &pki::Certificate) -> rotation::CertificateId {
        let summary = summary(certificate);
        self.certificates.insert(summary.fingerprint, certificate.clone());
        summary
    }

    /// Parses a CA bundle, unless the same text was parsed before.
    pub(super) fn parse_bundle(
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

    /// Returns how many different CA bundles of targets were parsed.
    pub fn parsed_bundle_count(&self) -> usize {
        self.bundles.len()
    }

    /// Returns a store with only the certificates of a trust bundle.
    #[must_use]
    pub fn subset(&self, bundle: &rotation::TrustSet) -> Self {
        let known = bundle.iter().filter_map(|certificate| {
            let known = self.certificates.get(&certificate.fingerprint)?;
            Some((certificate.fingerprint, known.clone()))
        });
        Self {
            certificates: known.collect(),
            bundles: HashMap::new(),
        }
    }

    /// Adds a certificate that a server presents. The issuer that it names is verified if the CA is known.
    pub fn insert_presented(&mut self, certificate: &pki::Certificate) -> rotation::CertificateId {
        let mut summary = self.insert(certificate);
        let mut named = self
            .certificates
            .values()
            .filter(|issuer| issuer.is_authority() && key_id(issuer) == summary.issuer_key_id)
            .peekable();
        if named.peek().is_some() && !named.any(|issuer| certificate.is_signed_by(issuer)) {
            summary.issuer_key_id = UNKNOWN_KEY;
        }
        summary
    }

    /// Returns the certificate with this identifier.
    ///
    /// # Errors
    ///
    /// If it was not loaded.
    pub fn find(
        &self,
        certificate: &rotation::CertificateId,
    ) -> Result<&pki::Certificate, UnknownCertificate> {
        self.certificates
            .get(&certificate.fingerprint)
            .ok_or(UnknownCertificate(certificate.fingerprint))
    }

    /// Returns the trust bundle with these certificates.
    ///
    /// # Errors
    ///
    /// If a certificate was not loaded, or if they form no valid trust bundle.
    pub fn trust_bundle(
        &self,
        bundle: &rotation::TrustSet,
    ) -> Result<trust_bundle::TrustBundle, WriteBundleError> {
        let certificates = bundle.iter().map(|certificate| self.find(certificate).cloned());
        let certificates = certificates.collect::<Result<Vec<_>, _>>()?;
        Ok(trust_bundle::TrustBundle::new(certificates)?)
    }
}

/// Returns the identifier of a certificate.
pub fn summary(certificate: &pki::Certificate) -> rotation::CertificateId {
    let key_id = key_id(certificate);
    let issuer_key_id = match certificate.authority_key_identifier() {
        Some(identifier) => KeyId::from_identifier(identifier),
        None if certificate.is_signed_by(certificate) => key_id,
        None => UNKNOWN_KEY,
    };
    rotation::CertificateId {
        fingerprint: Digest(certificate.fingerprint()),
        key_id,
        issuer_key_id,
        validity: certificate.validity(),
    }
}

/// Falls back to a hash of the key if the certificate has no key identifier.
fn key_id(certificate: &pki::Certificate) -> KeyId {
    let identifier = certificate.subject_key_identifier();
    KeyId::from_identifier(identifier.unwrap_or(certificate.public_key()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pki::sample;

    #[test]
    fn the_issuer_of_a_leaf_is_found() {
        let authority = sample::authority(1);
        let leaf = authority
            .issue(&sample::names(), &sample::key(), &sample::terms(sample::DAY))
            .unwrap();
        let mut certificates = CertificateStore::default();
        let root = certificates.insert(authority.certificate());
        assert_eq!(root.issuer_key_id, root.key_id);
        assert!(certificates.insert_presented(&leaf).is_signed_by(&root));
        assert_eq!(certificates.find(&root), Ok(authority.certificate()));
        let bundle = [root].into_iter().collect();
        let written = certificates.trust_bundle(&bundle).unwrap();
        assert_eq!(written.certificates(), [authority.certificate().clone()]);
    }

    #[test]
    fn a_forged_issuer_is_not_accepted() {
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
                .insert_presented(&leaf)
                .is_signed_by(&summary(authority.certificate()))
        );
        let root = certificates.insert(authority.certificate());
        assert!(!certificates.insert_presented(&leaf).is_signed_by(&root));
    }
}
