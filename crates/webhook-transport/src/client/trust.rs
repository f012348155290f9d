//! Whom a client trusts, and what it presents itself.

use std::{fmt, sync::Arc};

use hyper::body::Bytes;
use rustls::{
    ClientConfig, RootCertStore, SignatureScheme,
    client::{ResolvesClientCert, WebPkiServerVerifier, danger::ServerCertVerifier},
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    sign::CertifiedKey,
};
use rustls_platform_verifier::Verifier;
use thiserror::Error;
use tokio::sync::watch;

use super::TransportOptions;

/// What a client presents where a server asks for it; may change at any time.
pub struct ClientCertificate {
    current: watch::Sender<Option<Arc<CertifiedKey>>>,
}

/// Why a server cannot be trusted, whatever it presents; or a client cannot present itself.
#[derive(Clone, Debug, Error)]
pub enum TrustError {
    /// There is no trust bundle, and the system's roots are not asked for.
    #[error("there is no CA bundle to verify the server with")]
    NoCaBundle,
    /// Nothing in the trust bundle is a certificate.
    #[error("the CA bundle has no usable certificate")]
    NothingUsable,
    /// The roots of the system cannot be had.
    #[error("the roots of the system cannot be used: {0}")]
    SystemRoots(
        /// Why.
        rustls::Error,
    ),
    /// TLS cannot be set up.
    #[error("cannot set up TLS: {0}")]
    Tls(
        /// Why.
        String,
    ),
    /// What a client is to present cannot be read.
    #[error("the client certificate: {0}")]
    ClientCertificate(
        /// Why.
        String,
    ),
}

/// How a server is judged.
pub(super) struct Trust(ClientConfig);

#[derive(Debug)]
struct Presenter(Arc<ClientCertificate>);

// === impl ClientCertificate ===

impl ClientCertificate {
    /// A certificate with what leads to its CA, and its key, PEM.
    ///
    /// # Errors
    ///
    /// When either cannot be read, or the key belongs to another certificate.
    pub fn parse(certificates: &[u8], key: &[u8]) -> Result<Self, TrustError> {
        let read = certified(certificates, key)?;
        Ok(Self {
            current: watch::Sender::new(Some(Arc::new(read))),
        })
    }

    /// Presents another one from the next handshake on. [`Transport::forget_connections`](super::Transport::forget_connections)
    /// has those made anew on which the earlier one was presented.
    ///
    /// # Errors
    ///
    /// As [`Self::parse`]; the earlier one stays.
    pub fn replace(&self, certificates: &[u8], key: &[u8]) -> Result<(), TrustError> {
        let read = certified(certificates, key)?;
        self.current.send_replace(Some(Arc::new(read)));
        Ok(())
    }
}

fn certified(certificates: &[u8], key: &[u8]) -> Result<CertifiedKey, TrustError> {
    let failed = |problem: String| TrustError::ClientCertificate(problem);
    let chain: Vec<_> = CertificateDer::pem_slice_iter(certificates)
        .collect::<Result<_, _>>()
        .map_err(|error| failed(error.to_string()))?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| failed(format!("its key: {error}")))?;
    CertifiedKey::from_der(chain, key, &ring::default_provider()).map_err(|error| failed(error.to_string()))
}

impl fmt::Debug for ClientCertificate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ClientCertificate")
            .finish_non_exhaustive()
    }
}

// === impl Presenter ===

impl ResolvesClientCert for Presenter {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.0.current.borrow().clone()
    }

    fn has_certs(&self) -> bool {
        self.0.current.borrow().is_some()
    }
}

// === impl Trust ===

impl Trust {
    /// Trusts the certificates of `ca_bundle`, PEM. What is no certificate in it is left out, as Go leaves it out.
    pub(super) fn new(ca_bundle: &Bytes, options: &TransportOptions) -> Result<Self, TrustError> {
        let provider = Arc::new(ring::default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = match ca_bundle.is_empty() {
            true if options.system_roots => {
                Arc::new(Verifier::new(provider.clone()).map_err(TrustError::SystemRoots)?)
            }
            true => return Err(TrustError::NoCaBundle),
            false => {
                let mut roots = RootCertStore::empty();
                roots.add_parsable_certificates(CertificateDer::pem_slice_iter(ca_bundle).flatten());
                WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
                    .build()
                    .map_err(|_| TrustError::NothingUsable)?
            }
        };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| TrustError::Tls(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let config = match &options.client_certificate {
            Some(certificate) => config.with_client_cert_resolver(Arc::new(Presenter(certificate.clone()))),
            None => config.with_no_client_auth(),
        };
        Ok(Self(config))
    }

    pub(super) fn into_client_config(self) -> ClientConfig {
        self.0
    }
}
