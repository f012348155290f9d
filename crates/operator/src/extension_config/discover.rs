//! Asking the server of an ExtensionConfig which hooks it answers.

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
use webhook_transport::is_path;
use windlass_cluster::{
    Index, endpoints, kinds,
    prober::{ProbeError, TrustAnchors, TrustAnchorsError, WebhookAddress},
};
use windlass_object::{ObjectKey, names, object};

use crate::context::Context;

/// Where the server of an ExtensionConfig is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ServerPlace {
    /// Behind a Service.
    Service { service: ObjectKey, port: i64 },
    /// Outside of the cluster, or at a name of its own.
    Host { host: String, port: u16 },
}

/// Why it is not known what a server answers.
#[derive(Debug, Error)]
pub(super) enum DiscoverError {
    /// Nothing says which certificates are to be trusted.
    #[error(
        "spec.clientConfig.caBundle is empty: annotate the ExtensionConfig with {} or {}",
        names::INJECT_CA_FROM,
        names::INJECT_CA_FROM_SECRET
    )]
    NoCaBundle,
    /// What is to be trusted cannot be read.
    #[error("spec.clientConfig.caBundle is not base64")]
    Encoding,
    /// What is to be trusted cannot be used.
    #[error("spec.clientConfig.caBundle: {0}")]
    CaBundle(#[from] TrustAnchorsError),
    /// Neither a Service nor a usable URL is named.
    #[error("spec.clientConfig{0}")]
    ClientConfig(&'static str),
    /// There is no such Service.
    #[error("waiting for {0}")]
    NoService(ObjectKey),
    /// No pod behind the Service is ready.
    #[error("waiting for a ready endpoint of {service} on port {port}")]
    NoEndpoints {
        /// The Service.
        service: ObjectKey,
        /// Its port.
        port: i64,
    },
    /// The name of the server has no address.
    #[error("cannot resolve {host:?}: {source}")]
    Resolve {
        /// The name.
        host: String,
        /// What the resolver says; said with the name wherever this is said.
        source: io::Error,
    },
    /// It does not answer, or not as it should.
    #[error(transparent)]
    Call(#[from] ProbeError),
    /// What it answers cannot be used.
    #[error(transparent)]
    Answer(#[from] DiscoveryError),
}

/// How long a server may take, as Cluster API has it (`defaultDiscoveryTimeout` of `internal/runtime/client/client.go`).
const PATIENCE: Duration = Duration::from_secs(10);

/// How many endpoints are asked at the same time, the first answer of which counts: one dead pod is in nobody's way.
const ENDPOINTS: usize = 3;

/// The hooks that can be told from others.
static CATALOG: LazyLock<Catalog> = LazyLock::new(Catalog::of_cluster_api);

/// Asks the server of an ExtensionConfig what it answers.
///
/// # Errors
///
/// When it is not known, for whatever reason.
pub(super) async fn discover(context: &Context, config: &Value) -> Result<Discovered, DiscoverError> {
    let trust = trust(config)?;
    let place = ServerPlace::of(config)?;
    let prefix = match &place {
        ServerPlace::Service { .. } => object::text(config, "/spec/clientConfig/service/path")
            .unwrap_or_default()
            .to_owned(),
        ServerPlace::Host { .. } => url(config).map(|url| url.path().to_owned()).unwrap_or_default(),
    };
    let called = WebhookAddress {
        server_name: place.server_name(),
        path: format!(
            "{}?timeout={}s",
            hook::join(&prefix, &discovery::path()),
            PATIENCE.as_secs()
        ),
    };
    let addresses = place.addresses(&context.index).await?;
    let body = discovery::request();
    let asked = addresses.iter().map(|address| {
        // Boxed: a request is large.
        context
            .prober
            .discover(*address, &called, &trust, &body, PATIENCE)
            .boxed()
    });
    let mut answers = stream::iter(asked.collect::<Vec<_>>()).buffer_unordered(ENDPOINTS);
    let mut failed = None;
    while let Some(answer) = answers.next().await {
        match answer {
            Ok(body) => return Ok(discovery::read_answer(&body, &CATALOG)?),
            // The one that says most: who is not there says nothing.
            Err(error) if failed.as_ref().is_none_or(ProbeError::is_unreachable) => failed = Some(error),
            Err(_) => {}
        }
    }
    Err(failed.map_or_else(|| place.nobody(), DiscoverError::Call))
}

/// The addresses that a discovery would ask now, of a Service.
pub(super) fn endpoints_of(index: &Index, config: &Value) -> BTreeSet<SocketAddr> {
    match ServerPlace::of(config) {
        Ok(ServerPlace::Service { service, port }) => ready(index, &service, port).unwrap_or_default(),
        _ => BTreeSet::new(),
    }
}

/// The Service that an ExtensionConfig calls.
pub(super) fn service_of(config: &Value) -> Option<ObjectKey> {
    match ServerPlace::of(config) {
        Ok(ServerPlace::Service { service, .. }) => Some(service),
        _ => None,
    }
}

fn trust(config: &Value) -> Result<TrustAnchors, DiscoverError> {
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

/// The ready endpoints of a Service; `None` where there is no such Service. Only pods of one that selects pods: whoever writes
/// EndpointSlices could have anything dialled.
fn ready(index: &Index, service: &ObjectKey, port: i64) -> Option<BTreeSet<SocketAddr>> {
    let service = index.find(service)?;
    let selector = service.pointer("/spec/selector").and_then(Value::as_object);
    let selects = selector.is_some_and(|selector| !selector.is_empty());
    let ready = endpoints::ready(index, &service, Some(port)).into_iter();
    let dialled = ready.filter(|endpoint| !selects || endpoint.pod.is_some());
    Some(dialled.map(|endpoint| endpoint.address).collect())
}

// === impl ServerPlace ===

impl ServerPlace {
    fn of(config: &Value) -> Result<Self, DiscoverError> {
        let text = |field: &str| object::text(config, &format!("/spec/clientConfig/{field}"));
        if let (Some(namespace), Some(name)) = (text("service/namespace"), text("service/name")) {
            let path = text("service/path").unwrap_or_default();
            if !path.is_empty() && !is_path(path) {
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
        // A fragment is not there any more, once it is read.
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

    /// The name that its certificate must have.
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
            Self::Service { service, port } => match ready(index, service, *port) {
                None => Err(DiscoverError::NoService(service.clone())),
                Some(ready) if ready.is_empty() => Err(self.nobody()),
                Some(ready) => Ok(ready.into_iter().collect()),
            },
            Self::Host { host, port } => {
                let resolved =
                    tokio::time::timeout(PATIENCE, tokio::net::lookup_host((host.as_str(), *port)));
                let resolved = resolved.await.unwrap_or_else(|timeout| Err(timeout.into()));
                let resolved = resolved.map_err(|source| DiscoverError::Resolve {
                    host: host.clone(),
                    source,
                })?;
                Ok(resolved.collect())
            }
        }
    }

    /// Nobody is there.
    fn nobody(&self) -> DiscoverError {
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

    fn place(client_config: Value) -> Result<ServerPlace, String> {
        let config = json!({"spec": {"clientConfig": client_config}});
        ServerPlace::of(&config).map_err(|error| error.to_string())
    }

    #[test]
    fn a_server_is_where_its_configuration_says() {
        let service = place(json!({"service": {"namespace": "n", "name": "s", "path": "/x"}})).unwrap();
        assert_eq!(service.server_name(), "s.n.svc");
        assert!(matches!(service, ServerPlace::Service { port: 443, .. }));
        for (url, host, port) in [
            ("https://example.com", "example.com", 443),
            ("https://example.com:8443/x", "example.com", 8443),
            ("https://[::1]:8443/", "::1", 8443),
        ] {
            let expected = ServerPlace::Host {
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
    fn without_a_ca_bundle_nobody_is_asked() {
        let trust = |bundle: Value| trust(&json!({"spec": {"clientConfig": {"caBundle": bundle}}}));
        assert!(matches!(trust(Value::Null), Err(DiscoverError::NoCaBundle)));
        assert!(matches!(trust("".into()), Err(DiscoverError::NoCaBundle)));
        assert!(matches!(trust("%".into()), Err(DiscoverError::Encoding)));
        assert!(matches!(trust("YQ==".into()), Err(DiscoverError::CaBundle(_))));
    }
}
