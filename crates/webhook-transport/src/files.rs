//! Certificates, keys and authorities in PEM files.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, pem, pem::PemObject},
    sign::CertifiedKey,
};
use thiserror::Error;
use zeroize::Zeroizing;

/// The files of a certificate and its private key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    certificate: PathBuf,
    key: PathBuf,
}

/// Why files cannot be used. Messages name the files and never show their content.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the message explains each field")]
pub enum LoadFilesError {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// A file is not PEM, or lacks the expected section.
    #[error("{}: {source}", path.display())]
    Parse {
        path: PathBuf,
        /// The parse error.
        source: pem::Error,
    },
    /// The private key is unusable, or does not match the certificate.
    #[error("{} and {}: {source}", certificate.display(), key.display())]
    Use {
        certificate: PathBuf,
        /// The path of the private key.
        key: PathBuf,
        source: rustls::Error,
    },
    /// A file has no CA certificate, or one that cannot verify anything.
    #[error("{}: {problem}", path.display())]
    Authorities { path: PathBuf, problem: String },
}

/// The cryptography provider, passed explicitly so that nothing depends on the process-wide default.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

impl CertificateFiles {
    /// Names the file of a certificate chain and that of its private key.
    pub fn new(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self {
            certificate: certificate.into(),
            key: key.into(),
        }
    }

    /// Names `tls.crt` and `tls.key` in a folder, as in a mounted Secret.
    pub fn in_folder(folder: &Path) -> Self {
        Self::new(folder.join("tls.crt"), folder.join("tls.key"))
    }

    /// Loads the certificate and its private key.
    ///
    /// # Errors
    ///
    /// When a file cannot be read, or the private key does not match the certificate.
    pub fn load(&self) -> Result<CertifiedKey, LoadFilesError> {
        let chain = read_certificates(&self.certificate)?;
        let key = Zeroizing::new(read(&self.key)?);
        let key = PrivateKeyDer::from_pem_slice(&key).map_err(|source| LoadFilesError::Parse {
            path: self.key.clone(),
            source,
        })?;
        // Rejects a private key that does not match the certificate, which happens when both files are being
        // replaced.
        CertifiedKey::from_der(chain, key, &provider()).map_err(|source| LoadFilesError::Use {
            certificate: self.certificate.clone(),
            key: self.key.clone(),
            source,
        })
    }
}

/// Reads all certificates of a file; there may be none.
pub(crate) fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, LoadFilesError> {
    let certificates = CertificateDer::pem_slice_iter(&read(path)?).collect::<Result<_, _>>();
    certificates.map_err(|source| LoadFilesError::Parse {
        path: path.to_owned(),
        source,
    })
}

fn read(path: &Path) -> Result<Vec<u8>, LoadFilesError> {
    fs::read(path).map_err(|source| LoadFilesError::Read {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rcgen::generate_simple_self_signed;
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn a_certificate_needs_its_own_private_key() {
        let folder = TempDir::new().unwrap();
        let files = CertificateFiles::in_folder(folder.path());
        let issued = ["a.example.com", "b.example.com"]
            .map(|name| generate_simple_self_signed([name.to_owned()]).unwrap());
        let [first, second] = issued
            .each_ref()
            .map(|issued| (issued.cert.pem(), issued.signing_key.serialize_pem()));
        let no_key = files.load().unwrap_err().to_string();
        assert!(no_key.contains("tls.crt"), "{no_key}");
        for (certificate, key, is_good) in [
            (&first.0, &first.1, true),
            (&second.0, &second.1, true),
            (&format!("{}{}", first.0, second.0), &first.1, true),
            (&first.0, &second.1, false),
            (&first.1, &first.0, false),
            (&first.0, &String::new(), false),
            (&String::new(), &first.1, false),
            (&first.0[..100].to_owned(), &first.1, false),
            (&first.0, &first.1[..100].to_owned(), false),
        ] {
            fs::write(folder.path().join("tls.crt"), certificate).unwrap();
            fs::write(folder.path().join("tls.key"), key).unwrap();
            let loaded = files.load();
            assert_eq!(loaded.is_ok(), is_good, "{certificate}{loaded:?}");
            let text = format!("{loaded:?}");
            let secrets = [&first.1, &second.1].map(|key| key.lines().nth(1).unwrap().to_owned());
            assert!(!secrets.iter().any(|secret| text.contains(secret)), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_file_content_is_loaded_or_rejected(certificate in ".{0,100}", key in ".{0,100}") {
            let folder = TempDir::new().unwrap();
            fs::write(folder.path().join("tls.crt"), certificate).unwrap();
            fs::write(folder.path().join("tls.key"), format!("-----BEGIN PRIVATE KEY-----\n{key}\n-----END PRIVATE KEY-----")).unwrap();
            prop_assert!(CertificateFiles::in_folder(folder.path()).load().is_err());
        }
    }
}
