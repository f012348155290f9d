//! The CAs that must have signed client certificates.

use std::{path::PathBuf, sync::Arc};

use rustls::{
    RootCertStore,
    pki_types::CertificateDer,
    server::{WebPkiClientVerifier, danger::ClientCertVerifier},
};

use crate::{
    LoadFilesError,
    files::{provider, read_certificates},
};

/// A file with the CAs of client certificates, and whether a client certificate is required.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientAuthority {
    file: PathBuf,
    is_required: bool,
}

/// Verifies client certificates with the CAs that were last loaded.
#[derive(Debug)]
pub(super) struct ClientVerifier {
    pub(super) authorities: Vec<CertificateDer<'static>>,
    pub(super) verifier: Arc<dyn ClientCertVerifier>,
}

impl ClientAuthority {
    /// Rejects clients without a certificate signed by a CA in `file`, which is PEM.
    pub fn required(file: impl Into<PathBuf>) -> Self {
        Self {
            file: file.into(),
            is_required: true,
        }
    }

    /// Accepts clients without a certificate; a certificate must be signed by a CA in `file`, which is PEM.
    pub fn optional(file: impl Into<PathBuf>) -> Self {
        Self {
            file: file.into(),
            is_required: false,
        }
    }

    /// Loads the file.
    ///
    /// # Errors
    ///
    /// When the file has no CA, or one that cannot verify anything.
    pub(super) fn load(&self) -> Result<ClientVerifier, LoadFilesError> {
        let authorities = read_certificates(&self.file)?;
        let mut roots = RootCertStore::empty();
        for authority in &authorities {
            let added = roots.add(authority.clone());
            added.map_err(|error| self.unusable(error.to_string()))?;
        }
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider());
        let verifier = if self.is_required {
            verifier
        } else {
            verifier.allow_unauthenticated()
        };
        let verifier = verifier
            .build()
            .map_err(|error| self.unusable(error.to_string()))?;
        Ok(ClientVerifier {
            authorities,
            verifier,
        })
    }

    pub(super) fn unusable(&self, problem: String) -> LoadFilesError {
        LoadFilesError::Authorities {
            path: self.file.clone(),
            problem,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rcgen::generate_simple_self_signed;
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn a_file_without_ca_certificates_is_rejected() {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("ca.crt");
        let authority = ClientAuthority::required(&file);
        let certificate = generate_simple_self_signed(["a.example.com".to_owned()]).unwrap();
        let pem = certificate.cert.pem();
        assert!(authority.load().is_err(), "no file");
        for (content, is_good) in [
            (pem.clone(), true),
            (format!("comment\n{pem}{pem}"), true),
            (String::new(), false),
            ("garbage".into(), false),
            (pem[..80].to_owned(), false),
            (
                "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".into(),
                false,
            ),
        ] {
            fs::write(&file, &content).unwrap();
            let loaded = authority.load();
            assert_eq!(loaded.is_ok(), is_good, "{content}");
            if let Err(error) = loaded {
                assert!(error.to_string().contains("ca.crt"), "{error}");
            }
        }
    }
}
