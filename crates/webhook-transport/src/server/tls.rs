//! What TLS a server speaks.

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

/// Whether connections are encrypted.
#[derive(Clone, Debug)]
pub enum Encryption {
    /// All of them.
    Tls(ServerTls),
    /// A connection speaks TLS if its first byte says so, else plain HTTP/1.1. Without a configuration TLS is refused.
    TlsOrPlain(Option<ServerTls>),
}

/// Which versions of HTTP clients are offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpVersions {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2, and HTTP/1.1 for who does not know it.
    Http1And2,
}

/// TLS 1.2 and 1.3, always with the current certificate and the current authorities of clients.
#[derive(Clone)]
pub struct ServerTls {
    current: Reloaded<Configuration>,
}

struct Configuration {
    /// Those of clients.
    authorities: Vec<CertificateDer<'static>>,
    config: Arc<ServerConfig>,
}

/// HTTP/2 as TLS names it (RFC 9113, section 3.2).
pub(super) const HTTP2: &[u8] = b"h2";

// === impl HttpVersions ===

impl HttpVersions {
    fn protocols(self) -> Vec<Vec<u8>> {
        let http1 = b"http/1.1".to_vec();
        match self {
            Self::Http1 => vec![http1],
            Self::Http1And2 => vec![HTTP2.to_vec(), http1],
        }
    }
}

// === impl ServerTls ===

impl ServerTls {
    /// Asks clients for no certificate.
    ///
    /// # Errors
    ///
    /// When the cryptography lacks what it takes.
    pub fn new(certificate: LiveCertificate, versions: HttpVersions) -> Result<Self, rustls::Error> {
        Self::resolved_by(Arc::new(certificate), versions)
    }

    /// Asks clients for no certificate, and serves the one that `resolver` has at each handshake.
    ///
    /// # Errors
    ///
    /// When the cryptography lacks what it takes.
    pub fn resolved_by(
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

    /// Asks clients for a certificate of an authority whose file is read again whenever `period` has passed, for as long as
    /// anybody serves this. A file that cannot be used leaves the authorities as they are. Who is connected stays connected.
    ///
    /// # Errors
    ///
    /// When the file cannot be used now.
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    pub fn with_clients(
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
            name: "authorities of clients",
            load: Box::new(load),
            is_same: |known: &Configuration, read| known.authorities == read.authorities,
        };
        Ok(Self {
            current: Reloaded::follow(Some(first), source, period),
        })
    }

    /// Accepts one connection.
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

// === impl Configuration ===

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
            // A session that goes on is one whose certificate is not looked at again.
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        }
        Ok(Self {
            authorities: clients.authorities,
            config: Arc::new(config),
        })
    }
}
