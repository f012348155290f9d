//! TLS handshakes with endpoints.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use rustls::pki_types::ServerName;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};
use windlass_crd::conversion_review::ConversionProblem;

use super::trust::{Recorder, TrustAnchors};
use crate::{
    clock::Clock,
    telemetry::traces::{OpenSpan, SpanAttribute, run_in_span},
};

/// Connects to endpoints to check their certificates and webhooks.
#[derive(Clone)]
pub struct Prober {
    /// The timeout per endpoint.
    pub timeout: Duration,
    /// The clock for the validity of certificates.
    pub clock: Arc<dyn Clock>,
}

/// The certificates that an endpoint presented.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presented {
    /// The leaf and its intermediates, DER.
    pub chain: Vec<Vec<u8>>,
    /// Why the chain does not verify for the name with the trust anchors; `None` if it does.
    pub rejection: Option<String>,
}

/// Why a probe failed.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the message explains each field")]
pub enum ProbeError {
    /// The name is invalid in certificates.
    #[error("{name:?} is not a DNS name")]
    Name { name: String },
    /// The endpoint did not respond in time.
    #[error("{address} did not answer within {}s", .after.as_secs_f32())]
    Timeout { address: SocketAddr, after: Duration },
    /// The connection or the handshake failed.
    #[error("{address}: {problem}")]
    Connect {
        address: SocketAddr,
        /// The cause, which includes the address.
        problem: std::io::Error,
    },
    /// The endpoint's certificate does not verify.
    #[error("{address} serves an untrusted certificate: {rejection}")]
    NotTrusted { address: SocketAddr, rejection: String },
    /// The client's side of TLS cannot be set up.
    #[error("cannot set up TLS")]
    Tls(#[from] rustls::Error),
    /// The connection was closed without a response, for example by a panic of the server.
    #[error("{address} gave no HTTP answer to {path}")]
    Http {
        address: SocketAddr,
        path: String,
        source: hyper::Error,
    },
    /// The endpoint responded with a status other than 200.
    #[error("{address} answered {path} with HTTP {status}{}", if .words.is_empty() { String::new() } else { format!(": {words}") })]
    Status {
        address: SocketAddr,
        path: String,
        status: u16,
        /// The beginning of the response body.
        words: String,
    },
    /// The endpoint's response cannot be parsed.
    #[error("{address} {problem}")]
    Answer { address: SocketAddr, problem: String },
    /// The response is not a ConversionReview, or the API server would reject it.
    #[error("{address}: {problem}")]
    Conversion {
        address: SocketAddr,
        /// The cause, without the address.
        problem: ConversionProblem,
    },
}

/// Opens a span for a probe, if the task is traced.
pub(super) fn probe_span(probe: &'static str, address: SocketAddr, name: &str) -> Option<OpenSpan> {
    let span = OpenSpan::client(probe)?;
    Some(
        span.with(SpanAttribute::new("server.address", name.to_owned()))
            .with(SpanAttribute::new(
                "network.peer.address",
                address.ip().to_string(),
            ))
            .with(SpanAttribute::new("network.peer.port", i64::from(address.port()))),
    )
}

impl ProbeError {
    /// Reports whether the endpoint could not be reached, which may be due to a firewall, as opposed to a
    /// wrong response.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Timeout { .. } | Self::Connect { .. })
    }

    /// Reports whether the webhook has responded that it cannot convert the objects.
    pub fn is_refusal(&self) -> bool {
        let Self::Conversion { problem, .. } = self else {
            return false;
        };
        matches!(problem, ConversionProblem::Failed { .. })
    }
}

impl Presented {
    /// Checks that `address`, which has presented these certificates, is trusted.
    ///
    /// # Errors
    ///
    /// [`ProbeError::NotTrusted`] if it is not.
    pub fn check_trusted(self, address: SocketAddr) -> Result<(), ProbeError> {
        match self.rejection {
            None => Ok(()),
            Some(rejection) => Err(ProbeError::NotTrusted { address, rejection }),
        }
    }
}

impl Prober {
    /// Performs a handshake with `address` for the server name `name`. Also returns chains that do not
    /// verify.
    ///
    /// # Errors
    ///
    /// When the connection or the handshake fails.
    pub async fn handshake(
        &self,
        address: SocketAddr,
        name: &str,
        trust: &TrustAnchors,
    ) -> Result<Presented, ProbeError> {
        let connected = self.within(address, self.connect(address, name, trust));
        let (_, presented) = run_in_span(probe_span("TLS handshake", address, name), connected).await?;
        Ok(presented)
    }

    /// Connects, and records the certificates without rejecting them.
    pub(super) async fn connect(
        &self,
        address: SocketAddr,
        name: &str,
        trust: &TrustAnchors,
    ) -> Result<(TlsStream<TcpStream>, Presented), ProbeError> {
        let failed = |problem| ProbeError::Connect { address, problem };
        let server_name = ServerName::try_from(name.to_owned()).map_err(|_| ProbeError::Name {
            name: name.to_owned(),
        })?;
        let recorder = Arc::new(Recorder::new(trust, self.clock.now()));
        let mut config = rustls::ClientConfig::builder_with_provider(trust.provider())
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(recorder.clone())
            .with_no_client_auth();
        // No session resumption: every handshake must present the certificates.
        config.resumption = rustls::client::Resumption::disabled();
        let tcp = TcpStream::connect(address).await.map_err(failed)?;
        let tls = TlsConnector::from(Arc::new(config))
            .connect(server_name, tcp)
            .await
            .map_err(failed)?;
        let chain = tls.get_ref().1.peer_certificates().unwrap_or_default();
        let presented = Presented {
            chain: chain.iter().map(|certificate| certificate.to_vec()).collect(),
            rejection: recorder.rejection(),
        };
        Ok((tls, presented))
    }

    /// Returns a prober with another timeout.
    pub(super) fn with_timeout(&self, timeout: Duration) -> Self {
        Self {
            timeout,
            clock: self.clock.clone(),
        }
    }

    pub(super) async fn within<T>(
        &self,
        address: SocketAddr,
        probe: impl Future<Output = Result<T, ProbeError>>,
    ) -> Result<T, ProbeError> {
        tokio::time::timeout(self.timeout, probe)
            .await
            .map_err(|_| ProbeError::Timeout {
                address,
                after: self.timeout,
            })?
    }
}
