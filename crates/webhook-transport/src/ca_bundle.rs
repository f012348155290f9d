//! Validation of a trust bundle before it is used to call a server.

use rustls_pki_types::{
    CertificateDer,
    pem::{PemObject, SectionKind},
};
use thiserror::Error;
use webpki::anchor_from_trusted_cert;

/// Why a trust bundle is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CaBundleError {
    /// The PEM is malformed or truncated.
    #[error("must be PEM: {0}")]
    Syntax(
        /// The parse error.
        String,
    ),
    /// The bundle has a PEM section other than a certificate, for example a private key.
    #[error("must have certificates only, not {0}")]
    OtherSection(
        /// The label of that section.
        String,
    ),
    /// The bundle has no certificate.
    #[error("must have at least one PEM certificate")]
    NoCertificate,
    /// A section is not an X.509 certificate.
    #[error("certificate {number} is not an X.509 certificate: {problem}")]
    Certificate {
        /// The certificate's position, from 1.
        number: usize,
        /// The parse error.
        problem: String,
    },
}

/// Checks that `bundle` consists of one or more X.509 certificates in PEM. Text between the PEM sections is
/// ignored.
///
/// # Errors
///
/// The first invalid section.
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
    fn a_ca_bundle_has_only_certificates() {
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
                "certificate 2 is not an X.509 certificate: ",
            ),
        ] {
            let error = check_ca_bundle(bad.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        assert!(matches!(
            check_ca_bundle(broken.as_bytes()),
            Err(CaBundleError::Syntax(_))
        ));
    }
}
