//! Discovery: requests the list of handlers from the server of an ExtensionConfig.

use std::{collections::BTreeSet, io, net::SocketAddr, sync::LazyLock, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use futures::{FutureExt, StreamExt, stream};
use http::Uri;
use runtime_hooks::{
    Catalog,
    discovery::{self, Discovered, DiscoveryError},
    hook,
};
use serde_json::Value;
use thiserror::Error;
use webhook_transport::is_url_path;
use windlass_cluster::{
    Index, endpoints, kinds,
    prober::{ProbeError, TrustAnchors, TrustAnchorsError, WebhookAddress},
};
use windlass_object::{ObjectKey, names, object};

use crate::context::Context;

/// Address of an ExtensionConfig's server.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ServerAddress {
    /// A port of a Service in the cluster.
    Service { service: ObjectKey, port: i64 },
    /// A URL: a server outside of the cluster, or with another name.
    Host { host: String, port: u16 },
}

/// Why discovery failed.
#[derive(Debug, Error)]
pub(super) enum DiscoverError {
    /// There is no CA bundle.
    #[error(
        "spec.clientConfig.caBundle is empty: annotate the ExtensionConfig with {} or {}",
        names::INJECT_CA_FROM,
        names::INJECT_CA_FROM_SECRET
    )]
    NoCaBundle,
    /// The CA bundle cannot be decoded.
    #[error("spec.clientConfig.caBundle is not base64")]
    Encoding,
    /// The CA bundle is not usable.
    #[error("spec.clientConfig.caBundle: {0}")]
    CaBundle(#[from] TrustAnchorsError),
    /// There is no Service and no usable URL.
    #[error("spec.clientConfig{0}")]
    ClientConfig(&'static str),
    /// The Service does not exist.
    #[error("waiting for {0}")]
    NoService(ObjectKey),
    /// The Service has no ready endpoint.
    #[error("waiting for a ready endpoint of {service} on port {port}")]
    NoEndpoints { service: ObjectKey, port: i64 },
    /// The host name of the server cannot be resolved.
    #[error("cannot resolve {host:?}: {source}")]
    Resolve {
        host: String,
        /// The error of the resolver. The message includes it.
        source: io::Error,
    },
    /// The request failed.
    #[error(transparent)]
    Call(#[from] ProbeError),
    /// The response is not usable.
    #[error(transparent)]
    Response(#[from] DiscoveryError),
}

/// Timeout of a discovery request, as in Cluster API (`defaultDiscoveryTimeout` of
/// `internal/runtime/client/client.go`).
const TIMEOUT: Duration = Duration::from_secs(10);

/// Number of endpoints that are called at the same time. The first response counts, so that one dead pod
/// causes no delay.
const CONCURRENT_ENDPOINTS: usize = 3;

/// The hooks that Windlass knows: all of Cluster API.
static CATALOG: LazyLock<Catalog> = LazyLock::new(Catalog::cluster_api);

/// Requests the handlers from the server of an ExtensionConfig.
///
/// # Errors
///
/// If discovery fails for any reason.
pub(super) async fn discover(context: &Context, config: &Value) -> Result<Discovered, DiscoverError> {
    let trust = trust_anchors(config)?;
    let place = ServerAddress::from_config(config)?;
    let prefix = match &place {
        ServerAddress::Service { .. } => object::text(config, "/spec/clientConfig/service/path")
            .unwrap_or_default()
            .to_owned(),
        ServerAddress::Host { .. } => url(config).map(|url| url.path().to_owned()).unwrap_or_default(),
    };
    let called = WebhookAddress {
        server_name: place.server_name(),
        path: format!(
            "{}?timeout={}s",
            hook::join(&prefix, &discovery::path()),
            TIMEOUT.as_secs()
        ),
    };
    let addresses = place.addresses(&context.index).await?;
    let body = discovery::request();
    let input = addresses.iter().map(|address| {
        // Boxed, because a request is large.
        context
            .prober
            .discover(*address, &called, &trust, &body, TIMEOUT)
            .boxed()
    });
    let mut answers = stream::iter(input.collect::<Vec<_>>()).buffer_unordered(CONCURRENT_ENDPOINTS);
    let mut failed = None;
    while let Some(answer) = answers.next().await {
        match answer {
            Ok(body) => return Ok(discovery::read_answer(&body, &CATALOG)?),
            // Prefer errors of servers that can be reached, which explain more.
            Err(error) if failed.as_ref().is_none_or(ProbeError::is_unreachable) => failed = Some(error),
            Err(_) => {}
        }
    }
    Err(failed.map_or_else(|| place.no_addresses_error(), DiscoverError::Call))
}

/// Returns the addresses of the Service that discovery would call now.
pub(super) fn current_endpoints(index: &Index, config: &Value) -> BTreeSet<SocketAddr> {
    match ServerAddress::from_config(config) {
        Ok(ServerAddress::Service { service, port }) => {
            ready_endpoints(index, &service, port).unwrap_or_default()
        }
        _ => BTreeSet::new(),
    }
}

/// Returns the Service that an ExtensionConfig calls.
pub(super) fn called_service(config: &Value) -> Option<ObjectKey> {
    match ServerAddress::from_config(config) {
        Ok(ServerAddress::Service { service, .. }) => Some(service),
        _ => None,
    }
}

fn trust_anchors(config: &Value) -> Result<TrustAnchors, DiscoverError> {
    let bundle = object::text(config, "/spec/clientConfig/caBundle").unwrap_or_default();
    if bundle.is_empty() {
        return Err(DiscoverError::NoCaBundle);
    }
    let pem = STANDARD.decode(bundle).map_err(|_| DiscoverError::Encoding)?;
    Ok(TrustAnchors::parse(&pem)?)
}

fn url(config: &Value) -> Option<Uri> {
    object::text(config, "/spec/clientConfig/url")?.parse().ok()
}

/// Returns the ready endpoints of a Service, or `None` if the Service does not exist. Only pods of a Service
/// with a selector count: otherwise writers of EndpointSlices could direct requests to any address.
fn ready_endpoints(index: &Index, service: &ObjectKey, port: i64) -> Option<BTreeSet<SocketAddr>> {
    let service = index.find(service)?;
    let selector = service.pointer("/spec/selector").and_then(Value::as_object);
    let selects = selector.is_some_and(|selector| !selector.is_empty());
    let ready = endpoints::ready(index, &service, Some(port)).into_iter();
    let dialled = ready.filter(|endpoint| !selects || endpoint.pod.is_some());
    Some(dialled.map(|endpoint| endpoint.address).collect())
}

impl ServerAddress {
    fn from_config(config: &Value) -> Result<Self, DiscoverError> {
        let text = |field: &str| object::text(config, &format!("/spec/clientConfig/{field}"));
        if let (Some(namespace), Some(name)) = (text("service/namespace"), text("service/name")) {
            let path = text("service/path").unwrap_or_default();
            if !path.is_empty() && !is_url_path(path) {
                return Err(DiscoverError::ClientConfig(
                    ".service.path: must begin with /, and have no query or fragment",
                ));
            }
            let port = config.pointer("/spec/clientConfig/service/port");
            return Ok(Self::Service {
                service: kinds::SERVICE.object(Some(namespace), name),
                port: port.and_then(Value::as_i64).unwrap_or(443),
            });
        }
        if text("url").is_none() {
            return Err(DiscoverError::ClientConfig(": must have service or url"));
        }
        let url = url(config).ok_or(DiscoverError::ClientConfig(".url: is not a URL"))?;
        if url.scheme_str() != Some("https") {
            return Err(DiscoverError::ClientConfig(".url: must begin with https://"));
        }
        let authority = url
            .authority()
            .map(http::uri::Authority::as_str)
            .unwrap_or_default();
        // `Uri` drops the fragment, so look for it in the text.
        let has_fragment = text("url").is_some_and(|url| url.contains('#'));
        if authority.contains('@') || url.query().is_some() || has_fragment {
            return Err(DiscoverError::ClientConfig(
                ".url: must have no user, query or fragment",
            ));
        }
        let host = url.host().unwrap_or_default();
        Ok(Self::Host {
            host: host.trim_matches(['[', ']']).to_owned(),
            port: url.port_u16().unwrap_or(443),
        })
    }

    /// Returns the DNS name that its certificate must have.
    fn server_name(&self) -> String {
        match self {
            Self::Service { service, .. } => {
                let namespace = service.namespace.as_deref().unwrap_or_default();
                format!("{}.{namespace}.svc", service.name)
            }
            Self::Host { host, .. } => host.clone(),
        }
    }

    async fn addresses(&self, index: &Index) -> Result<Vec<SocketAddr>, DiscoverError> {
        match self {
            Self::Service { service, port } => match ready_endpoints(index, service, *port) {
                None => Err(DiscoverError::NoService(service.clone())),
                Some(ready) if ready.is_empty() => Err(self.no_addresses_error()),
                Some(ready) => Ok(ready.into_iter().collect()),
            },
            Self::Host { host, port } => {
                let resolved = tokio::time::timeout(TIMEOUT, tokio::net::lookup_host((host.as_str(), *port)));
                let resolved = resolved.await.unwrap_or_else(|timeout| Err(timeout.into()));
                let resolved = resolved.map_err(|source| DiscoverError::Resolve {
                    host: host.clone(),
                    source,
                })?;
                Ok(resolved.collect())
            }
        }
    }

    /// The error if there are no addresses.
    fn no_addresses_error(&self) -> DiscoverError {
        match self {
            Self::Service { service, port } => DiscoverError::NoEndpoints {
                service: service.clone(),
                port: *port,
            },
            Self::Host { host, .. } => DiscoverError::Resolve {
                host: host.clone(),
                source: io::ErrorKind::NotFound.into(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn place(client_config: Value) -> Result<ServerAddress, String> {
        let config = json!({"spec": {"clientConfig": client_config}});
        ServerAddress::from_config(&config).map_err(|error| error.to_string())
    }

    #[test]
    fn the_client_config_determines_the_server_address() {
        let service = place(json!({"service": {"namespace": "n", "name": "s", "path": "/x"}})).unwrap();
        assert_eq!(service.server_name(), "s.n.svc");
        assert!(matches!(service, ServerAddress::Service { port: 443, .. }));
        for (url, host, port) in [
            ("https://example.com", "example.com", 443),
            ("https://example.com:8443/x", "example.com", 8443),
            ("https://[::1]:8443/", "::1", 8443),
        ] {
            let expected = ServerAddress::Host {
                host: host.into(),
                port,
            };
            assert_eq!(place(json!({"url": url})), Ok(expected));
        }
        for (wrong, expected) in [
            (json!({}), ": must have service or url"),
            (
                json!({"url": "http://example.com"}),
                ".url: must begin with https://",
            ),
            (
                json!({"url": "https://a:b@example.com"}),
                ".url: must have no user, query or fragment",
            ),
            (
                json!({"url": "https://example.com/?a=b"}),
                ".url: must have no user, query or fragment",
            ),
            (
                json!({"url": "https://example.com/#a"}),
                ".url: must have no user, query or fragment",
            ),
            (json!({"url": "a b"}), ".url: is not a URL"),
            (
                json!({"service": {"namespace": "n", "name": "s", "path": "/x?a=b"}}),
                ".service.path: must begin with /, and have no query or fragment",
            ),
            (
                json!({"service": {"namespace": "n", "name": "s", "path": "runtime-extensions/"}}),
                ".service.path: must begin with /, and have no query or fragment",
            ),
        ] {
            assert_eq!(place(wrong), Err(format!("spec.clientConfig{expected}")));
        }
    }

    #[test]
    fn without_a_ca_bundle_no_request_is_sent() {
        let trust = |bundle: Value| trust_anchors(&json!({"spec": {"clientConfig": {"caBundle": bundle}}}));
        assert!(matches!(trust(Value::Null), Err(DiscoverError::NoCaBundle)));
        assert!(matches!(trust("".into()), Err(DiscoverError::NoCaBundle)));
        assert!(matches!(trust("%".into()), Err(DiscoverError::Encoding)));
        assert!(matches!(trust("YQ==".into()), Err(DiscoverError::CaBundle(_))));
    }
}
