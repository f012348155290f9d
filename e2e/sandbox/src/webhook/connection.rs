//! One TLS connection to a webhook server.

use std::{net::SocketAddr, sync::Arc};

use http::{Request, Response};
use http_body_util::Full;
use hyper::{
    body::{Bytes, Incoming},
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use rustls::{CertificateError, ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::target::WebhookClientConfig;

/// An open connection.
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
}

/// Why a request got no response.
pub(super) enum ExchangeError {
    /// The connection was closed before the first byte of the response.
    BeforeAnswer,
    /// Another error, with Go's message.
    Failed(String),
}

impl Connection {
    /// Dials `address` and verifies its certificate for `target`.
    pub(super) async fn open(address: SocketAddr, target: &WebhookClientConfig) -> Result<Self, String> {
        let stream = TcpStream::connect(address).await.map_err(|error| {
            let reason = match error.kind() {
                std::io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
                _ => error.to_string(),
            };
            format!("dial tcp {address}: {reason}")
        })?;
        // Requests are small and wait for their response, so Nagle's algorithm would only delay them.
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        let mut roots = RootCertStore::empty();
        let (_, _) = roots.add_parsable_certificates(target.trusted_certificates());
        let config = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = target.server_name()?;
        let stream = TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
            .map_err(|error| tls_error(&error, &target.host()))?;
        let (sender, connection) = http1::Builder::new()
            .title_case_headers(true)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| error.to_string())?;
        tokio::spawn(async move {
            // The waiting request receives the error through the sender.
            let _ = connection.await;
        });
        Ok(Self { sender })
    }

    /// Reports whether another request can be sent.
    pub(super) fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    /// Sends a request and waits for the head of the response.
    pub(super) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, ExchangeError> {
        if self.sender.ready().await.is_err() {
            return Err(ExchangeError::BeforeAnswer);
        }
        self.sender.send_request(request).await.map_err(|error| {
            if error.is_canceled() || error.is_closed() || error.is_incomplete_message() {
                return ExchangeError::BeforeAnswer;
            }
            let io =
                std::error::Error::source(&error).and_then(|source| source.downcast_ref::<std::io::Error>());
            match io.map(std::io::Error::kind) {
                Some(
                    std::io::ErrorKind::ConnectionReset
                    | std::io::ErrorKind::BrokenPipe
                    | std::io::ErrorKind::UnexpectedEof,
                ) => ExchangeError::BeforeAnswer,
                _ => ExchangeError::Failed(error.to_string()),
            }
        })
    }
}

/// Returns the error of a failed handshake with Go's message.
fn tls_error(error: &std::io::Error, host: &str) -> String {
    let inner = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(reason)) => {
            format!(
                "tls: failed to verify certificate: x509: {}",
                certificate_error(reason, host)
            )
        }
        Some(rustls::Error::AlertReceived(alert)) => format!("remote error: tls: {alert:?}"),
        Some(other) => format!("tls: {other}"),
        None if error.kind() == std::io::ErrorKind::UnexpectedEof => "EOF".to_owned(),
        None => error.to_string(),
    }
}

fn certificate_error(reason: &CertificateError, host: &str) -> String {
    let is_address = host.parse::<std::net::IpAddr>().is_ok();
    match reason {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "certificate signed by unknown authority".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } if is_address => {
            format!("cannot validate certificate for {host} because it doesn't contain any IP SANs")
        }
        CertificateError::NotValidForName => format!("certificate is not valid for {host}"),
        CertificateError::NotValidForNameContext { presented, .. } => {
            format!("certificate is valid for {}, not {host}", presented.join(", "))
        }
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => {
            "certificate has expired or is not yet valid".to_owned()
        }
        other => other.to_string(),
    }
}
