//! Verification of certificate chains with a trust bundle, as the API server does it, but without closing the
//! connection on failure.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use parking_lot::Mutex;
use rustls::{
    DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, WebPkiSupportedAlgorithms},
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};
use thiserror::Error;

/// The parsed CA certificates of a trust bundle.
#[derive(Clone, Debug)]
pub struct TrustAnchors {
    provider: Arc<CryptoProvider>,
    verifier: Option<Arc<WebPkiServerVerifier>>,
}

/// Why a trust bundle is invalid.
#[derive(Debug, Error)]
pub enum TrustAnchorsError {
    /// The bundle is not PEM.
    #[error("the trust bundle is not PEM: {0}")]
    Pem(String),
    /// A certificate cannot be a trust anchor.
    #[error("the trust bundle contains a certificate that cannot be a trust anchor")]
    Certificate(#[source] rustls::Error),
    /// The bundle has no certificates.
    #[error("the trust bundle is empty")]
    Empty(#[source] rustls::client::VerifierBuilderError),
}

/// Accepts every chain, and records why it should have been rejected.
#[derive(Debug)]
pub(super) struct Recorder {
    trust: TrustAnchors,
    now: Timestamp,
    rejection: Mutex<Option<String>>,
}

impl TrustAnchors {
    /// Parses a trust bundle in PEM.
    ///
    /// # Errors
    ///
    /// When it contains anything but CA certificates, or none.
    pub fn parse(pem: &[u8]) -> Result<Self, TrustAnchorsError> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| TrustAnchorsError::Pem(error.to_string()))?;
            roots.add(certificate).map_err(TrustAnchorsError::Certificate)?;
        }
        let provider = Self::ring();
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .build()
            .map_err(TrustAnchorsError::Empty)?;
        Ok(Self {
            provider,
            verifier: Some(verifier),
        })
    }

    /// Returns an empty trust bundle, for reading certificates only.
    pub fn none() -> Self {
        Self {
            provider: Self::ring(),
            verifier: None,
        }
    }

    pub(super) fn provider(&self) -> Arc<CryptoProvider> {
        self.provider.clone()
    }

    fn ring() -> Arc<CryptoProvider> {
        Arc::new(rustls::crypto::ring::default_provider())
    }
}

impl Recorder {
    /// Verifies as of `now`.
    pub(super) fn new(trust: &TrustAnchors, now: Timestamp) -> Self {
        Self {
            trust: trust.clone(),
            now,
            rejection: Mutex::new(None),
        }
    }

    pub(super) fn rejection(&self) -> Option<String> {
        self.rejection.lock().clone()
    }

    fn algorithms(&self) -> &WebPkiSupportedAlgorithms {
        &self.trust.provider.signature_verification_algorithms
    }
}

impl ServerCertVerifier for Recorder {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let now = u64::try_from(self.now.as_second()).unwrap_or_default();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(now));
        let rejection = match &self.trust.verifier {
            None => Some("no trust bundle to verify it with yet".to_owned()),
            Some(verifier) => verifier
                .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
                .err()
                .map(|error| error.to_string()),
        };
        *self.rejection.lock() = rejection;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, certificate, signature, self.algorithms())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signature, self.algorithms())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms().supported_schemes()
    }
}
