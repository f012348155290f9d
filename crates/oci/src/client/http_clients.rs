//! HTTP clients for registries.

use std::{
    error::Error,
    pin::pin,
    sync::{Arc, atomic::AtomicU64, atomic::Ordering},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri, header};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioTimer},
};
use rustls::{
    ClientConfig,
    client::danger::ServerCertVerifier,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};
use rustls_platform_verifier::Verifier;
use url::Url;

use super::{
    RegistryError, RegistryOptions, any_certificate::AnyCertificate, proxy_connector::ProxyConnector,
    upload_body::UploadBody,
};

type HttpClient = Client<HttpsConnector<ProxyConnector>, UploadBody>;

/// Clients that verify certificates, and clients that do not.
#[derive(Clone)]
pub(super) struct HttpClients {
    verified: HttpClient,
    insecure: HttpClient,
    idle_timeout: Duration,
    user_agent: HeaderValue,
}

/// Idle connections are closed after this time.
const POOL_IDLE: Duration = Duration::from_secs(30);

impl HttpClients {
    pub(super) fn new(options: &RegistryOptions) -> Result<Self, RegistryError> {
        let unusable = |error: &dyn ToString| RegistryError::CertificateAuthorities(error.to_string());
        let authorities = CertificateDer::pem_slice_iter(&options.certificate_authorities)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| unusable(&error))?;
        if authorities.is_empty() && !options.certificate_authorities.is_empty() {
            return Err(unusable(&"no PEM certificate found"));
        }
        let provider = Arc::new(ring::default_provider());
        let verifier = Verifier::new_with_extra_roots(authorities, provider.clone())
            .map_err(|error| unusable(&error))?;
        let client = |verifier: Arc<dyn ServerCertVerifier>, is_verified: bool| {
            let config = ClientConfig::builder_with_provider(provider.clone())
                .with_safe_default_protocol_versions()
                .map_err(|error| unusable(&error))?
                .dangerous()
                .with_custom_certificate_verifier(verifier)
                .with_no_client_auth();
            let connector = hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(config);
            let connector = if is_verified {
                connector.https_only()
            } else {
                connector.https_or_http()
            };
            let connector = connector
                .enable_all_versions()
                .wrap_connector(ProxyConnector::new(options.proxies, options.connect_timeout));
            let client = Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .timer(TokioTimer::new())
                .pool_idle_timeout(POOL_IDLE)
                .build(connector);
            Ok::<HttpClient, RegistryError>(client)
        };
        Ok(Self {
            verified: client(Arc::new(verifier), true)?,
            insecure: client(Arc::new(AnyCertificate(provider.clone())), false)?,
            idle_timeout: options.idle_timeout,
            user_agent: HeaderValue::from_str(&options.user_agent).unwrap_or(HeaderValue::from_static("oci")),
        })
    }

    /// Sends a request and waits for the head of the response.
    pub(super) async fn request(
        &self,
        is_insecure: bool,
        method: &Method,
        url: &Url,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, RegistryError> {
        let host = host_of(url);
        let taken = Arc::new(AtomicU64::new(0));
        let failed = |cause: String| RegistryError::Connect {
            host: host.clone(),
            cause,
        };
        let uri: Uri = url[..url::Position::AfterQuery]
            .parse()
            .map_err(|_| failed("its URL is not valid".to_owned()))?;
        let mut request = Request::new(UploadBody::new(body, taken.clone()));
        *request.method_mut() = method.clone();
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        request
            .headers_mut()
            .insert(header::USER_AGENT, self.user_agent.clone());
        let client = if is_insecure {
            &self.insecure
        } else {
            &self.verified
        };
        let mut pending = pin!(client.request(request));
        loop {
            let before = taken.load(Ordering::Relaxed);
            match tokio::time::timeout(self.idle_timeout, &mut pending).await {
                Ok(Ok(response)) => return Ok(response),
                Ok(Err(error)) if error.is_connect() => return Err(failed(causes(&error))),
                Ok(Err(error)) => {
                    return Err(RegistryError::Interrupted {
                        host,
                        cause: causes(&error),
                    });
                }
                Err(_) if taken.load(Ordering::Relaxed) != before => {}
                Err(_) => {
                    return Err(RegistryError::Idle {
                        host,
                        after: self.idle_timeout,
                    });
                }
            }
        }
    }
}

/// The host of a URL, and its port unless it is the default.
pub(super) fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// Joins the causes of an error, without texts that intermediate layers repeat.
pub(super) fn causes(error: &dyn Error) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        let message = cause.to_string();
        if !words.iter().any(|known| known.contains(&message)) {
            words.push(message);
        }
        next = cause.source();
    }
    if words.is_empty() {
        words.push(error.to_string());
    }
    words.join(": ")
}
