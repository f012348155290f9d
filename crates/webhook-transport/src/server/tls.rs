//! TLS configuration of a server.

use std::{fmt, sync::Arc, time::Duration};

use rustls::{
    ServerConfig,
    pki_types::CertificateDer,
    server::{NoServerSessionStorage, ResolvesServerCert, WebPkiClientVerifier},
};
use tokio_rustls::TlsAcceptor;

use super::client_authority::{ClientAuthority, ClientVerifier};
use crate::{
    LiveCertificate, LoadFilesError,
    files::provider,
    reloaded::{ReloadSource, Reloaded},
};

/// Whether connections use TLS.
#[derive(Clone, Debug)]
pub enum Encryption {
    /// Every connection uses TLS.
    Tls(ServerTls),
    /// A connection uses TLS if its first byte starts a handshake, and plain HTTP/1.1 otherwise. `None`
    /// rejects TLS.
    TlsOrPlain(Option<ServerTls>),
}

/// The HTTP versions that clients are offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpVersions {
    /// Only HTTP/1.1.
    Http1,
    /// HTTP/2, and HTTP/1.1 for clients without HTTP/2.
    Http1And2,
}

/// TLS 1.2 and 1.3 with the current certificate and the current client CAs.
#[derive(Clone)]
pub struct ServerTls {
    current: Reloaded<Configuration>,
}

struct Configuration {
    /// The CAs of client certificates.
    authorities: Vec<CertificateDer<'static>>,
    config: Arc<ServerConfig>,
}

/// The ALPN name of HTTP/2 (RFC 9113, section 3.2).
pub(super) const HTTP2: &[u8] = b"h2";

impl HttpVersions {
    fn protocols(self) -> Vec<Vec<u8>> {
        let http1 = b"http/1.1".to_vec();
        match self {
            Self::Http1 => vec![http1],
            Self::Http1And2 => vec![HTTP2.to_vec(), http1],
        }
    }
}

impl ServerTls {
    /// Requests no client certificate.
    ///
    /// # Errors
    ///
    /// When the cryptography provider lacks a required algorithm.
    pub fn new(certificate: LiveCertificate, versions: HttpVersions) -> Result<Self, rustls::Error> {
        Self::from_resolver(Arc::new(certificate), versions)
    }

    /// Requests no client certificate, and serves the certificate that `resolver` returns for each handshake.
    ///
    /// # Errors
    ///
    /// When the cryptography provider lacks a required algorithm.
    pub fn from_resolver(
        resolver: Arc<dyn ResolvesServerCert>,
        versions: HttpVersions,
    ) -> Result<Self, rustls::Error> {
        let verifier = ClientVerifier {
            authorities: Vec::new(),
            verifier: WebPkiClientVerifier::no_client_auth(),
        };
        let configuration = Configuration::new(resolver, versions, verifier)?;
        Ok(Self {
            current: Reloaded::fixed(Some(configuration)),
        })
    }

    /// Requests client certificates signed by a CA in a file, which is reloaded every `period` as long as a
    /// clone exists. An unusable file leaves the CAs unchanged. Open connections stay open.
    ///
    /// # Errors
    ///
    /// When the file cannot be used at the start.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    pub fn with_client_authority(
        certificate: LiveCertificate,
        versions: HttpVersions,
        clients: ClientAuthority,
        period: Duration,
    ) -> Result<Self, LoadFilesError> {
        let load = move || {
            let loaded = clients.load()?;
            let configured = Configuration::new(Arc::new(certificate.clone()), versions, loaded);
            configured.map_err(|error| clients.unusable(error.to_string()))
        };
        let first = load()?;
        let source = ReloadSource {
            name: "client CAs",
            load: Box::new(load),
            is_same: |known: &Configuration, read| known.authorities == read.authorities,
        };
        Ok(Self {
            current: Reloaded::follow(Some(first), source, period),
        })
    }

    /// Returns an acceptor for one connection.
    pub(super) fn acceptor(&self) -> Option<TlsAcceptor> {
        let configuration = self.current.current()?;
        Some(TlsAcceptor::from(configuration.config.clone()))
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ServerTls").finish_non_exhaustive()
    }
}

impl Configuration {
    fn new(
        resolver: Arc<dyn ResolvesServerCert>,
        versions: HttpVersions,
        clients: ClientVerifier,
    ) -> Result<Self, rustls::Error> {
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(clients.verifier)
            .with_cert_resolver(resolver);
        config.alpn_protocols = versions.protocols();
        if !clients.authorities.is_empty() {
            // No session resumption: a resumed session would skip verification of the client certificate.
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        }
        Ok(Self {
            authorities: clients.authorities,
            config: Arc::new(config),
        })
    }
}
