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

/// The files of a certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    certificate: PathBuf,
    key: PathBuf,
}

/// Why files cannot be used. It names them, and never shows what they hold.
#[derive(Debug, Error)]
pub enum LoadFilesError {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file is not PEM of what it should hold.
    #[error("{}: {source}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: pem::Error,
    },
    /// The key cannot sign, or belongs to another certificate.
    #[error("{} and {}: {source}", certificate.display(), key.display())]
    Use {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// What is wrong.
        source: rustls::Error,
    },
    /// A file has no authority, or one that nothing can be verified by.
    #[error("{}: {problem}", path.display())]
    Authorities {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

/// What TLS is made of; named, so that nothing depends on what a program installs.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

// === impl CertificateFiles ===

impl CertificateFiles {
    /// A file with a certificate and those that lead to its authority, and one with its key.
    pub fn new(certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self {
            certificate: certificate.into(),
            key: key.into(),
        }
    }

    /// `tls.crt` and `tls.key` in a folder, as a Secret is mounted.
    pub fn in_folder(folder: &Path) -> Self {
        Self::new(folder.join("tls.crt"), folder.join("tls.key"))
    }

    /// Reads both.
    ///
    /// # Errors
    ///
    /// When a file cannot be read, or they are not a certificate and its key.
    pub fn load(&self) -> Result<CertifiedKey, LoadFilesError> {
        let chain = read_certificates(&self.certificate)?;
        let key = Zeroizing::new(read(&self.key)?);
        let key = PrivateKeyDer::from_pem_slice(&key).map_err(|source| LoadFilesError::Parse {
            path: self.key.clone(),
            source,
        })?;
        // Refuses a key that does not belong to the certificate: what is read while both files are replaced.
        CertifiedKey::from_der(chain, key, &provider()).map_err(|source| LoadFilesError::Use {
            certificate: self.certificate.clone(),
            key: self.key.clone(),
            source,
        })
    }
}

/// All certificates in a file, of which there may be none.
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
    fn only_a_certificate_with_its_own_key_is_taken() {
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
            let said = format!("{loaded:?}");
            let secrets = [&first.1, &second.1].map(|key| key.lines().nth(1).unwrap().to_owned());
            assert!(!secrets.iter().any(|secret| said.contains(secret)), "{said}");
        }
    }

    proptest! {
        #[test]
        fn whatever_files_hold_is_read_or_refused(certificate in ".{0,100}", key in ".{0,100}") {
            let folder = TempDir::new().unwrap();
            fs::write(folder.path().join("tls.crt"), certificate).unwrap();
            fs::write(folder.path().join("tls.key"), format!("-----BEGIN PRIVATE KEY-----\n{key}\n-----END PRIVATE KEY-----")).unwrap();
            prop_assert!(CertificateFiles::in_folder(folder.path()).load().is_err());
        }
    }
}
