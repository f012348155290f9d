//! Dials endpoints and looks at their certificates.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use rustls::pki_types::ServerName;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};
use windlass_crd::conversion_review::ConversionProblem;

use super::trust::{Recorder, TrustAnchors};
use crate::{
    clock::Clock,
    telemetry::traces::{OpenSpan, SpanAttribute, spanned},
};

/// Dials endpoints.
#[derive(Clone)]
pub struct Prober {
    /// How long one endpoint may take to answer.
    pub timeout: Duration,
    /// By which certificates are valid, or are not.
    pub clock: Arc<dyn Clock>,
}

/// What an endpoint presented in a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presented {
    /// The leaf and what follows it, DER.
    pub chain: Vec<Vec<u8>>,
    /// Why the chain does not verify under the trust anchors for the name; `None` when it does.
    pub rejection: Option<String>,
}

/// Why an endpoint could not be dialled or did not answer as it should.
#[derive(Debug, Error)]
pub enum ProbeError {
    /// The name is none that a certificate can have.
    #[error("{name:?} is not a DNS name")]
    Name {
        /// The name.
        name: String,
    },
    /// The endpoint did not answer in time.
    #[error("{address} did not answer within {}s", .after.as_secs_f32())]
    Timeout {
        /// The endpoint.
        address: SocketAddr,
        /// How long it had.
        after: Duration,
    },
    /// No connection, or no handshake on it.
    #[error("{address}: {problem}")]
    Connect {
        /// The endpoint.
        address: SocketAddr,
        /// What went wrong; said with the address wherever this is said.
        problem: std::io::Error,
    },
    /// The endpoint's certificate does not verify.
    #[error("{address} serves an untrusted certificate: {rejection}")]
    NotTrusted {
        /// The endpoint.
        address: SocketAddr,
        /// Why.
        rejection: String,
    },
    /// TLS cannot be set up on our side.
    #[error("cannot set up TLS")]
    Tls(#[from] rustls::Error),
    /// The request was cut off: a server that panics closes its connection without an answer.
    #[error("{address} gave no HTTP answer to {path}")]
    Http {
        /// The endpoint.
        address: SocketAddr,
        /// The path.
        path: String,
        /// What went wrong.
        source: hyper::Error,
    },
    /// The endpoint answered with another status than 200.
    #[error("{address} answered {path} with HTTP {status}{}", if .words.is_empty() { String::new() } else { format!(": {words}") })]
    Status {
        /// The endpoint.
        address: SocketAddr,
        /// The path.
        path: String,
        /// The status.
        status: u16,
        /// The beginning of what it said beside that.
        words: String,
    },
    /// The endpoint answered what nobody can read.
    #[error("{address} {problem}")]
    Answer {
        /// The endpoint.
        address: SocketAddr,
        /// What is wrong with the answer.
        problem: String,
    },
    /// The endpoint answered what is no ConversionReview or one that the API server would refuse.
    #[error("{address}: {problem}")]
    Conversion {
        /// The endpoint.
        address: SocketAddr,
        /// What is wrong with the answer; said with the address wherever this is said.
        problem: ConversionProblem,
    },
}

/// The span of a probe, where it is of a trace.
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

// === impl ProbeError ===

impl ProbeError {
    /// Whether nobody was there to speak to, rather than somebody who says the wrong thing: what a firewall does.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Timeout { .. } | Self::Connect { .. })
    }

    /// Whether the webhook has answered, and says itself that it cannot convert what it was sent.
    pub fn is_refusal(&self) -> bool {
        let Self::Conversion { problem, .. } = self else {
            return false;
        };
        matches!(problem, ConversionProblem::Failed { .. })
    }
}

// === impl Presented ===

impl Presented {
    /// Whether `address`, which has presented this, is trusted.
    ///
    /// # Errors
    ///
    /// [`ProbeError::NotTrusted`] when it is not.
    pub fn trusted(self, address: SocketAddr) -> Result<(), ProbeError> {
        match self.rejection {
            None => Ok(()),
            Some(rejection) => Err(ProbeError::NotTrusted { address, rejection }),
        }
    }
}

// === impl Prober ===

impl Prober {
    /// A handshake with `address` under the server name `name`. The chain is reported whether it verifies or not.
    ///
    /// # Errors
    ///
    /// When there is no connection or no handshake.
    pub async fn handshake(
        &self,
        address: SocketAddr,
        name: &str,
        trust: &TrustAnchors,
    ) -> Result<Presented, ProbeError> {
        let connected = self.within(address, self.connect(address, name, trust));
        let (_, presented) = spanned(probe_span("TLS handshake", address, name), connected).await?;
        Ok(presented)
    }

    /// A connection on which the certificate has been looked at, but not judged.
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
        // Every handshake is to present the certificate anew.
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

    /// The same with another timeout.
    pub(super) fn patient(&self, timeout: Duration) -> Self {
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
