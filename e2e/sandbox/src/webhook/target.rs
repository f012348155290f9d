//! The target of a `clientConfig`.

use std::{fmt::Write, net::SocketAddr, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
use serde_json::Value;

use super::{endpoints::Endpoints, error::CallError};

/// The default port of a webhook's Service.
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

/// Sets the port of a `service`, and removes a `caBundle` without bytes, which Go omits (`omitempty`).
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
    /// Parses a `clientConfig`.
    ///
    /// # Errors
    ///
    /// When it has neither a Service nor an https URL, or its caBundle is not base64 or contains no
    /// certificate.
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

    /// Returns the URL of the call, as in error messages.
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

    /// Returns the name that the server's certificate must have.
    pub(super) fn host(&self) -> String {
        match &self.place {
            Place::Service { namespace, name, .. } => format!("{name}.{namespace}.svc"),
            Place::Url { host, .. } => host.clone(),
        }
    }

    /// Returns [`Self::host`] as a TLS server name.
    pub(super) fn server_name(&self) -> Result<ServerName<'static>, String> {
        let host = self.host();
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        ServerName::try_from(host).map_err(|error| error.to_string())
    }

    /// Returns the trusted certificates. PEM blocks of other types are skipped, as in Go.
    pub(super) fn trusted_certificates(&self) -> Vec<CertificateDer<'static>> {
        certificates(&self.bundle)
    }

    /// Reports whether both targets can share connections: they have the same address and bundle; the path
    /// does not matter.
    pub(super) fn shares_connections_with(&self, other: &Self) -> bool {
        self.place == other.place && self.bundle == other.bundle
    }

    /// Returns an address to dial.
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
                // Go tries IPv4 and IPv6; servers on loopback listen on IPv4 here.
                found.sort_by_key(SocketAddr::is_ipv6);
                found
                    .first()
                    .copied()
                    .ok_or_else(|| format!("dial tcp: lookup {host}: no such host"))
            }
        }
    }
}

/// Returns the Service of a `clientConfig`, and the path.
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
    Ok((place, absolute_path(&field("path"))))
}

/// Returns the address in a URL, and the path.
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
    Ok((place, absolute_path(parsed.path())))
}

/// Returns the certificates of a PEM bundle.
fn certificates(bundle: &[u8]) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(bundle)
        .filter_map(Result::ok)
        .collect()
}

fn absolute_path(path: &str) -> String {
    if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/{path}")
    }
}
