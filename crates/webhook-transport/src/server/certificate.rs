//! The certificate that a server serves, at each handshake.

use std::{fmt, sync::Arc, time::Duration};

use rustls::{
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

use crate::{
    CertificateFiles, LoadFilesError,
    reloaded::{Reloaded, Source},
};

/// The certificate that is served now, if there is one.
#[derive(Clone)]
pub struct ServedCertificate {
    current: Reloaded<CertifiedKey>,
}

// === impl ServedCertificate ===

impl ServedCertificate {
    /// Always this one.
    pub fn fixed(certificate: CertifiedKey) -> Self {
        Self {
            current: Reloaded::fixed(Some(certificate)),
        }
    }

    /// None: every handshake fails.
    pub fn none() -> Self {
        Self {
            current: Reloaded::fixed(None),
        }
    }

    /// What is in `files` now.
    ///
    /// # Errors
    ///
    /// When that cannot be served.
    pub fn load(files: &CertificateFiles) -> Result<Self, LoadFilesError> {
        files.load().map(Self::fixed)
    }

    /// What is in `files`, read again whenever `period` has passed, for as long as it is served by anybody. Files that cannot be
    /// served leave the certificate as it is.
    ///
    /// # Errors
    ///
    /// When they cannot be served now.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    pub fn follow(files: CertificateFiles, period: Duration) -> Result<Self, LoadFilesError> {
        let first = files.load()?;
        Ok(Self::reloaded(Some(first), files, period))
    }

    /// As [`Self::follow`], but `files` need not be there yet: handshakes fail until they are.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    pub fn wait_for(files: CertificateFiles, period: Duration) -> Self {
        Self::reloaded(None, files, period)
    }

    fn reloaded(first: Option<CertifiedKey>, files: CertificateFiles, period: Duration) -> Self {
        let source = Source {
            name: "serving certificate",
            load: Box::new(move || files.load()),
            is_same: |known: &CertifiedKey, read| known.cert == read.cert,
        };
        Self {
            current: Reloaded::follow(first, source, period),
        }
    }
}

impl ResolvesServerCert for ServedCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current.current()
    }
}

impl fmt::Debug for ServedCertificate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ServedCertificate")
            .finish_non_exhaustive()
    }
}
