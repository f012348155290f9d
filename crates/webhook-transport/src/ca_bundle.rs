//! Whether a trust bundle can be used, before anybody is called with it.

use rustls_pki_types::{
    CertificateDer,
    pem::{PemObject, SectionKind},
};
use thiserror::Error;
use webpki::anchor_from_trusted_cert;

/// Why nobody can be trusted by what should be certificates.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CaBundleError {
    /// It breaks off.
    #[error("must be PEM: {0}")]
    Syntax(
        /// What is wrong.
        String,
    ),
    /// Something else is in it, a key perhaps.
    #[error("must have certificates only, not {0}")]
    OtherSection(
        /// What it is.
        String,
    ),
    /// Nothing in it is a certificate.
    #[error("must have at least one PEM certificate")]
    NoCertificate,
    /// A section is not an X.509 certificate.
    #[error("certificate {number} is not one of X.509: {problem}")]
    Certificate {
        /// Which, from 1.
        number: usize,
        /// What is wrong with it.
        problem: String,
    },
}

/// Whether `bundle` is one or more X.509 certificates in PEM, and nothing else. What stands between them does not count.
///
/// # Errors
///
/// With the first that is wrong.
pub fn check_ca_bundle(bundle: &[u8]) -> Result<(), CaBundleError> {
    let mut number = 0;
    for section in <(SectionKind, Vec<u8>)>::pem_slice_iter(bundle) {
        let (kind, der) = section.map_err(|error| CaBundleError::Syntax(error.to_string()))?;
        if kind != SectionKind::Certificate {
            return Err(CaBundleError::OtherSection(format!("{kind:?}")));
        }
        number += 1;
        anchor_from_trusted_cert(&CertificateDer::from(der)).map_err(|error| CaBundleError::Certificate {
            number,
            problem: error.to_string(),
        })?;
    }
    match number {
        0 => Err(CaBundleError::NoCertificate),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};

    use super::*;

    #[test]
    fn a_bundle_is_certificates_and_nothing_else() {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::default().self_signed(&key).unwrap().pem();
        let two = format!("# the first\n{certificate}\n# the second\r\n{certificate}");
        for good in [&certificate, &two] {
            assert_eq!(check_ca_bundle(good.as_bytes()), Ok(()));
        }
        let broken = certificate.replace("-----END CERTIFICATE-----", "");
        let junk = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        for (bad, expected) in [
            ("", "must have at least one PEM certificate"),
            ("certificates", "must have at least one PEM certificate"),
            (
                &format!("{certificate}{}", key.serialize_pem()),
                "must have certificates only, not PrivateKey",
            ),
            (
                &format!("{certificate}{junk}"),
                "certificate 2 is not one of X.509: TrailingData(SignedData)",
            ),
        ] {
            assert_eq!(check_ca_bundle(bad.as_bytes()).unwrap_err().to_string(), expected);
        }
        assert!(matches!(
            check_ca_bundle(broken.as_bytes()),
            Err(CaBundleError::Syntax(_))
        ));
    }
}
