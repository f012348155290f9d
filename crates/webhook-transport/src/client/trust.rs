//! Verification of servers, and the client's own certificate.

use std::sync::Arc;

use hyper::body::Bytes;
use rustls::{
    ClientConfig, RootCertStore,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier},
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};
use rustls_platform_verifier::Verifier;
use thiserror::Error;

use super::TransportOptions;

/// Why no server certificate can be verified.
#[derive(Clone, Debug, Error)]
pub enum TrustError {
    /// There is no trust bundle, and the system's root certificates are not enabled.
    #[error("there is no CA bundle to verify the server with")]
    NoCaBundle,
    /// The trust bundle has no certificate.
    #[error("the CA bundle has no usable certificate")]
    NothingUsable,
    /// The system's root certificates cannot be loaded.
    #[error("the system's root certificates cannot be used: {0}")]
    SystemRoots(rustls::Error),
    /// TLS cannot be set up.
    #[error("cannot set up TLS: {0}")]
    Tls(String),
}

/// The TLS configuration for one trust bundle.
pub(super) struct ServerTrust(ClientConfig);

impl ServerTrust {
    /// Trusts the certificates of `ca_bundle`, in PEM. Invalid certificates are skipped, as in Go.
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
            Some(certificate) => config.with_client_cert_resolver(Arc::new(certificate.clone())),
            None => config.with_no_client_auth(),
        };
        Ok(Self(config))
    }

    pub(super) fn into_client_config(self) -> ClientConfig {
        self.0
    }
}
