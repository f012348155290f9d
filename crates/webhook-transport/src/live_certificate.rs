//! A certificate that is reloaded while it is in use, by a server or by a client.

use std::{fmt, sync::Arc, time::Duration};

use rustls::{
    SignatureScheme,
    client::ResolvesClientCert,
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

use crate::{
    CertificateFiles, LoadFilesError,
    reloaded::{ReloadSource, Reloaded},
};

/// The current certificate, if there is one.
#[derive(Clone)]
pub struct LiveCertificate {
    current: Reloaded<CertifiedKey>,
}

impl LiveCertificate {
    /// Uses one certificate forever.
    pub fn fixed(certificate: CertifiedKey) -> Self {
        Self {
            current: Reloaded::fixed(Some(certificate)),
        }
    }

    /// Has no certificate: every TLS handshake of a server fails.
    pub fn none() -> Self {
        Self {
            current: Reloaded::fixed(None),
        }
    }

    /// Loads `files` once.
    ///
    /// # Errors
    ///
    /// When the files cannot be used.
    pub fn load(files: &CertificateFiles) -> Result<Self, LoadFilesError> {
        files.load().map(Self::fixed)
    }

    /// Loads `files` and reloads them every `period`, as long as a clone exists. Unusable files leave the
    /// certificate unchanged.
    ///
    /// # Errors
    ///
    /// When the files cannot be used at the start.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    pub fn follow(files: CertificateFiles, period: Duration) -> Result<Self, LoadFilesError> {
        let first = files.load()?;
        Ok(Self::reloaded(Some(first), files, period))
    }

    /// Like [`Self::follow`], but `files` may be missing at the start: TLS handshakes of a server fail until
    /// they can be loaded.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    pub fn wait_for(files: CertificateFiles, period: Duration) -> Self {
        Self::reloaded(None, files, period)
    }

    fn reloaded(first: Option<CertifiedKey>, files: CertificateFiles, period: Duration) -> Self {
        let source = ReloadSource {
            name: "certificate",
            load: Box::new(move || files.load()),
            is_same: |known: &CertifiedKey, read| known.cert == read.cert,
        };
        Self {
            current: Reloaded::follow(first, source, period),
        }
    }

    /// The current certificate in DER, without its chain; empty if there is none.
    #[cfg(feature = "client")]
    pub(crate) fn leaf(&self) -> Vec<u8> {
        let current = self.current.current();
        let leaf = current.as_ref().and_then(|current| current.cert.first());
        leaf.map_or_else(Vec::new, |leaf| leaf.to_vec())
    }
}

impl ResolvesServerCert for LiveCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current.current()
    }
}

impl ResolvesClientCert for LiveCertificate {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.current.current()
    }

    fn has_certs(&self) -> bool {
        self.current.current().is_some()
    }
}

impl fmt::Debug for LiveCertificate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("LiveCertificate").finish_non_exhaustive()
    }
}
