//! Requests to a collector, with the HTTP client and TLS of this crate. The collector may be down or slow,
//! and its responses are untrusted.

use std::{fmt, io, pin::Pin, str::FromStr, sync::Arc, time::Duration};

use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use opentelemetry_http::{HttpClient, HttpError};
use rustls::{
    ClientConfig, RootCertStore,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier},
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};
use rustls_platform_verifier::Verifier;
use thiserror::Error;
use tokio::runtime::Handle;

/// The URL of an OTLP/HTTP collector: `http://HOST:PORT`, with an optional prefix of the traces path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectorUrl(Uri);

/// A text is not a [`CollectorUrl`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("must be http://HOST:PORT or https://HOST:PORT of a collector that takes OTLP over HTTP")]
pub struct InvalidCollectorUrl;

/// Why TLS to a collector cannot be set up.
#[derive(Debug, Error)]
pub enum CollectorTlsError {
    /// The CA bundle has no usable certificates.
    #[error("the CA of the collector has no usable certificate")]
    NoCertificate,
    /// TLS cannot be set up.
    #[error("cannot set up TLS to the collector")]
    Tls(#[from] rustls::Error),
}

/// Sends requests to a collector.
pub(super) struct CollectorClient {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    /// The runtime for requests: the exporter runs on a separate thread.
    runtime: Handle,
}

/// The timeout of a request, as in OpenTelemetry.
const TIMEOUT: Duration = Duration::from_secs(10);

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long an idle connection is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// The maximum size of a response, which contains at most the number of rejected spans.
const MAX_RESPONSE: usize = 64 << 10;

/// The path for traces below the URL of a collector.
const TRACES: &str = "/v1/traces";

impl CollectorUrl {
    pub(super) fn traces(&self) -> String {
        let base = self.0.to_string();
        format!("{}{TRACES}", base.trim_end_matches('/'))
    }
}

impl FromStr for CollectorUrl {
    type Err = InvalidCollectorUrl;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let url: Uri = text.parse().map_err(|_| InvalidCollectorUrl)?;
        let is_http = url
            .scheme_str()
            .is_some_and(|scheme| ["http", "https"].contains(&scheme));
        // Credentials belong into headers: URLs are logged.
        let is_plain = url
            .authority()
            .is_some_and(|authority| !authority.host().is_empty() && !authority.as_str().contains('@'));
        match is_http && is_plain && url.query().is_none() {
            true => Ok(Self(url)),
            false => Err(InvalidCollectorUrl),
        }
    }
}

impl fmt::Display for CollectorUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl CollectorClient {
    /// Trusts the certificates in `ca`, PEM, or those of the system. Requests run on the runtime that calls
    /// this.
    pub(super) fn new(ca: Option<&[u8]>) -> Result<Self, CollectorTlsError> {
        let provider = Arc::new(ring::default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = match ca {
            Some(ca) => {
                let mut roots = RootCertStore::empty();
                for certificate in CertificateDer::pem_slice_iter(ca) {
                    let certificate = certificate.map_err(|_| CollectorTlsError::NoCertificate)?;
                    roots.add(certificate)?;
                }
                WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
                    .build()
                    .map_err(|_| CollectorTlsError::NoCertificate)?
            }
            None => Arc::new(Verifier::new(provider.clone())?),
        };
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        let mut connector = HttpConnector::new();
        // TLS is added on top.
        connector.enforce_http(false);
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        let client = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(1)
            .http1_max_buf_size(MAX_RESPONSE)
            .build(connector);
        Ok(Self {
            client,
            runtime: Handle::current(),
        })
    }
}

/// The signature that `async_trait` generates.
impl HttpClient for CollectorClient {
    fn send_bytes<'client, 'sent>(
        &'client self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'sent>>
    where
        'client: 'sent,
        Self: 'sent,
    {
        let client = self.client.clone();
        let sent = self.runtime.spawn(async move {
            let exchanged = async {
                let answer = client.request(request.map(Full::new)).await?;
                let (head, body) = answer.into_parts();
                let body = Limited::new(body, MAX_RESPONSE).collect().await?.to_bytes();
                Ok(Response::from_parts(head, body))
            };
            tokio::time::timeout(TIMEOUT, exchanged)
                .await
                .unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()))
        });
        Box::pin(async move { sent.await? })
    }
}

impl fmt::Debug for CollectorClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CollectorClient").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collector_urls_have_no_credentials() {
        for (text, traces) in [
            ("http://collector:4318", Some("http://collector:4318/v1/traces")),
            ("http://collector:4318/", Some("http://collector:4318/v1/traces")),
            (
                "https://[::1]:4318/otlp/",
                Some("https://[::1]:4318/otlp/v1/traces"),
            ),
            ("", None),
            ("collector:4318", None),
            ("/v1/traces", None),
            ("grpc://collector:4317", None),
            ("http://user:password@collector", None),
            ("http://collector?token=a", None),
            ("http://", None),
        ] {
            let url = text.parse::<CollectorUrl>().ok();
            assert_eq!(url.map(|url| url.traces()).as_deref(), traces, "{text}");
        }
    }
}
