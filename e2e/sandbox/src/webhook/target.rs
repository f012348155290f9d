//! Where a `clientConfig` leads.

use std::{fmt::Write, net::SocketAddr, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
use serde_json::Value;

use super::{endpoints::Endpoints, error::CallError};

/// The port of a webhook's Service when none is named.
const DEFAULT_PORT: i64 = 443;

/// A parsed `clientConfig`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookClientConfig {
    place: Place,
    path: String,
    bundle: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Service {
        namespace: String,
        name: String,
        port: i64,
    },
    Url {
        host: String,
        port: u16,
    },
}

/// Fills in the port of a `service`, and leaves out a `caBundle` of which Go writes no bytes where there are none
/// (`omitempty`).
pub(crate) fn default_client_config(config: Option<&mut Value>) {
    let Some(config) = config.filter(|config| config.is_object()) else {
        return;
    };
    let service = config.get_mut("service").filter(|service| service.is_object());
    if let Some(service) = service
        && service["port"].is_null()
    {
        service["port"] = DEFAULT_PORT.into();
    }
    if let Some(fields) = config.as_object_mut() {
        fields.retain(|name, value| name != "caBundle" || !(value.is_null() || value == ""));
    }
}

impl WebhookClientConfig {
    /// Reads a `clientConfig`.
    ///
    /// # Errors
    ///
    /// When it has neither a Service nor an https URL, or its caBundle is no base64 or holds no certificate.
    pub fn parse(config: &Value) -> Result<Self, CallError> {
        let text = |pointer: &str| {
            config
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let encoded: String = text("/caBundle").split_whitespace().collect();
        let bundle = STANDARD
            .decode(encoded)
            .map_err(|error| CallError::Client(error.to_string()))?;
        if !bundle.trim_ascii().is_empty() && certificates(&bundle).is_empty() {
            let problem = "unable to load root certificates: unable to parse bytes as PEM block";
            return Err(CallError::Client(problem.to_owned()));
        }
        let (place, path) = match text("/url") {
            "" => service_place(config)?,
            url => url_place(url)?,
        };
        Ok(Self { place, path, bundle })
    }

    /// The URL that is called, as error messages show it.
    pub fn url(&self, timeout: Duration) -> String {
        let mut url = String::from("https://");
        // Writing to a String cannot fail.
        let _ = match &self.place {
            Place::Service {
                namespace,
                name,
                port,
            } => write!(url, "{name}.{namespace}.svc:{port}"),
            Place::Url { host, port: 443 } => write!(url, "{host}"),
            Place::Url { host, port } => write!(url, "{host}:{port}"),
        };
        let _ = write!(url, "{}?timeout={}s", self.path, timeout.as_secs());
        url
    }

    /// The name that the server's certificate must carry.
    pub(super) fn host(&self) -> String {
        match &self.place {
            Place::Service { namespace, name, .. } => format!("{name}.{namespace}.svc"),
            Place::Url { host, .. } => host.clone(),
        }
    }

    /// [`Self::host`] for TLS.
    pub(super) fn server_name(&self) -> Result<ServerName<'static>, String> {
        let host = self.host();
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        ServerName::try_from(host).map_err(|error| error.to_string())
    }

    /// The certificates that are trusted; blocks that are none are skipped, as Go does.
    pub(super) fn trusted(&self) -> Vec<CertificateDer<'static>> {
        certificates(&self.bundle)
    }

    /// Whether a connection to `other` serves here as well: same place and same bundle; the path does not matter.
    pub(super) fn shares_connections_with(&self, other: &Self) -> bool {
        self.place == other.place && self.bundle == other.bundle
    }

    /// An address to dial.
    pub(super) async fn address(&self, endpoints: &dyn Endpoints) -> Result<SocketAddr, String> {
        match &self.place {
            Place::Service {
                namespace,
                name,
                port,
            } => endpoints
                .resolve(namespace, name, *port)
                .map_err(|error| error.to_string()),
            Place::Url { host, port } => {
                let bare = host.trim_start_matches('[').trim_end_matches(']');
                let mut found = tokio::net::lookup_host((bare, *port))
                    .await
                    .map_err(|error| format!("dial tcp: lookup {host}: {error}"))?
                    .collect::<Vec<_>>();
                // Go tries IPv4 and IPv6; what listens on loopback here is IPv4.
                found.sort_by_key(SocketAddr::is_ipv6);
                found
                    .first()
                    .copied()
                    .ok_or_else(|| format!("dial tcp: lookup {host}: no such host"))
            }
        }
    }
}

/// The Service that a `clientConfig` names, and the path.
fn service_place(config: &Value) -> Result<(Place, String), CallError> {
    let service = config.get("service").filter(|service| service.is_object());
    let Some(service) = service else {
        return Err(CallError::Client("must specify a service or a URL".to_owned()));
    };
    let field = |name: &str| {
        service
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let port = service
        .get("port")
        .and_then(Value::as_i64)
        .unwrap_or(DEFAULT_PORT);
    let place = Place::Service {
        namespace: field("namespace"),
        name: field("name"),
        port,
    };
    Ok((place, absolute(&field("path"))))
}

/// Where a URL leads, and the path.
fn url_place(url: &str) -> Result<(Place, String), CallError> {
    let parsed: http::Uri = url
        .parse()
        .map_err(|error| CallError::Client(format!("parse {url:?}: {error}")))?;
    let Some(host) = parsed.host().filter(|_| parsed.scheme_str() == Some("https")) else {
        return Err(CallError::Client(format!(
            "the URL {url:?} is not an https URL with a host"
        )));
    };
    let place = Place::Url {
        host: host.to_owned(),
        port: parsed.port_u16().unwrap_or(443),
    };
    Ok((place, absolute(parsed.path())))
}

/// The certificates of a PEM bundle.
fn certificates(bundle: &[u8]) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(bundle)
        .filter_map(Result::ok)
        .collect()
}

fn absolute(path: &str) -> String {
    if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/{path}")
    }
}
