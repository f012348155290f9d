//! A certificate that is read again while it is used: what a server serves, or what a client presents, at each handshake.

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

/// The certificate that is used now, if there is one.
#[derive(Clone)]
pub struct LiveCertificate {
    current: Reloaded<CertifiedKey>,
}

// === impl LiveCertificate ===

impl LiveCertificate {
    /// Always this one.
    pub fn fixed(certificate: CertifiedKey) -> Self {
        Self {
            current: Reloaded::fixed(Some(certificate)),
        }
    }

    /// None: every handshake of a server fails.
    pub fn none() -> Self {
        Self {
            current: Reloaded::fixed(None),
        }
    }

    /// What is in `files` now.
    ///
    /// # Errors
    ///
    /// When that cannot be used.
    pub fn load(files: &CertificateFiles) -> Result<Self, LoadFilesError> {
        files.load().map(Self::fixed)
    }

    /// What is in `files`, read again whenever `period` has passed, for as long as it is used by anybody. Files that cannot be used
    /// leave the certificate as it is.
    ///
    /// # Errors
    ///
    /// When they cannot be used now.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    pub fn follow(files: CertificateFiles, period: Duration) -> Result<Self, LoadFilesError> {
        let first = files.load()?;
        Ok(Self::reloaded(Some(first), files, period))
    }

    /// As [`Self::follow`], but `files` need not be there yet: handshakes of a server fail until they are.
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

    /// The certificate of now, without those that lead to its CA, DER; empty where there is none.
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
