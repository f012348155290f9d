//! The serving certificate: read from files, kept fresh, handed to TLS.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem, pem::PemObject},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// How often the files are read for a change. The node swaps a symbolic link, which file watches miss.
const POLL: Duration = Duration::from_millis(200);

/// Why a certificate cannot be served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    /// A file is not PEM of what it should hold.
    #[error("{}: {source}", path.display())]
    Parse { path: PathBuf, source: pem::Error },
    /// The key cannot sign, or belongs to another certificate.
    #[error("{} and {}: {source}", certificate.display(), key.display())]
    Use {
        certificate: PathBuf,
        key: PathBuf,
        source: rustls::Error,
    },
}

/// The files of a certificate and its key.
#[derive(Clone, Debug)]
pub(crate) struct CertificateFiles {
    certificate: PathBuf,
    key: PathBuf,
}

/// The certificate that is served now, if there is one.
#[derive(Clone)]
pub(crate) struct ServedCertificate {
    current: watch::Sender<Option<Arc<CertifiedKey>>>,
}

// === impl CertificateFiles ===

impl CertificateFiles {
    /// `tls.crt` and `tls.key` in a folder.
    pub(crate) fn new(folder: &Path) -> Self {
        Self {
            certificate: folder.join("tls.crt"),
            key: folder.join("tls.key"),
        }
    }

    fn load(&self) -> Result<CertifiedKey, LoadError> {
        let read = |path: &PathBuf| {
            fs::read(path).map_err(|source| LoadError::Read {
                path: path.clone(),
                source,
            })
        };
        let parse = |path: &PathBuf| {
            let path = path.clone();
            move |source| LoadError::Parse { path, source }
        };
        let chain: Vec<_> = CertificateDer::pem_slice_iter(&read(&self.certificate)?)
            .collect::<Result<_, _>>()
            .map_err(parse(&self.certificate))?;
        let key = PrivateKeyDer::from_pem_slice(&read(&self.key)?).map_err(parse(&self.key))?;
        // Refuses a key that does not belong to the certificate: what is read while both files are replaced.
        CertifiedKey::from_der(chain, key, &ring::default_provider()).map_err(|source| LoadError::Use {
            certificate: self.certificate.clone(),
            key: self.key.clone(),
            source,
        })
    }
}

// === impl ServedCertificate ===

impl ServedCertificate {
    /// Reads the files once.
    pub(crate) fn load(files: &CertificateFiles) -> Result<Self, LoadError> {
        Ok(Self {
            current: watch::Sender::new(Some(Arc::new(files.load()?))),
        })
    }

    /// No certificate yet: handshakes fail until its files are there.
    pub(crate) fn none() -> Self {
        Self {
            current: watch::Sender::new(None),
        }
    }

    /// A certificate of another name, signed by nobody.
    pub(crate) fn wrong() -> anyhow::Result<Self> {
        let wrong = rcgen::generate_simple_self_signed(["wrong.example.com".to_owned()])?;
        let key = PrivateKeyDer::try_from(wrong.signing_key.serialize_der()).map_err(anyhow::Error::msg)?;
        let certified =
            CertifiedKey::from_der(vec![wrong.cert.der().clone()], key, &ring::default_provider())?;
        Ok(Self {
            current: watch::Sender::new(Some(Arc::new(certified))),
        })
    }

    /// Follows the files until `ended`. Files that cannot be used leave the certificate as it is.
    pub(crate) fn keep_fresh(&self, files: CertificateFiles, ended: CancellationToken) {
        let current = self.current.clone();
        tokio::spawn(ended.run_until_cancelled_owned(async move {
            let mut complaint = String::new();
            loop {
                tokio::time::sleep(POLL).await;
                match files.load() {
                    Ok(loaded)
                        if current
                            .borrow()
                            .as_ref()
                            .is_none_or(|known| known.cert != loaded.cert) =>
                    {
                        current.send_replace(Some(Arc::new(loaded)));
                        tracing::info!("Serving a new certificate");
                    }
                    Ok(_) => complaint.clear(),
                    Err(error) if error.to_string() != complaint => {
                        complaint = error.to_string();
                        tracing::warn!(error = complaint, "Keeping the certificate");
                    }
                    Err(_) => {}
                }
            }
        }));
    }

    /// TLS 1.2 and 1.3 with HTTP/1.1, always with the current certificate.
    pub(crate) fn tls(&self) -> Result<ServerConfig, rustls::Error> {
        let mut tls = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(self.clone()));
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(tls)
    }
}

impl ResolvesServerCert for ServedCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current.borrow().clone()
    }
}

impl fmt::Debug for ServedCertificate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Certificate").finish_non_exhaustive()
    }
}
