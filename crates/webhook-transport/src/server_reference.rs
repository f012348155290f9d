//! Who is called.

use std::{
    fmt,
    hash::{Hash, Hasher},
};

use bytes::Bytes;
use http::{
    Uri,
    uri::{Authority, PathAndQuery},
};
use sha2::{Digest, Sha256};
use thiserror::Error;
use windlass_object::rfc1123::is_label;

/// A server, by the name that its certificate must have, and by whom it is trusted.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerReference {
    pub(crate) authority: Authority,
    prefix: String,
    ca_bundle: Bytes,
    /// Of the trust bundle, which is long: names it in logs, and in tables of what is known of servers.
    digest: [u8; 8],
}

/// Why a server cannot be called.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ServerError {
    /// Neither host nor port can be read.
    #[error("{0:?} is not a URL")]
    Url(
        /// The URL.
        String,
    ),
    /// It is not called over TLS.
    #[error("{0:?} must begin with https://")]
    Scheme(
        /// The URL.
        String,
    ),
    /// Something stands in the URL that is sent to nobody.
    #[error("{0:?} must have no user, query or fragment")]
    Extra(
        /// The URL.
        String,
    ),
    /// A name or port is none that a Service has.
    #[error("Service {namespace}/{name}, port {port}, cannot be called")]
    Service {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Its port.
        port: i64,
    },
    /// Something stands in the path of a Service that would be sent to nobody, or would lead elsewhere.
    #[error("path {0:?} must begin with /, and have no query or fragment")]
    Path(
        /// The path.
        String,
    ),
}

// === impl ServerReference ===

impl ServerReference {
    /// The server behind a Service, called at `path` and below by the name `<name>.<namespace>.svc`. An empty `ca_bundle`, PEM, is
    /// what the system trusts, if that is asked for.
    ///
    /// # Errors
    ///
    /// When a name is none that a host can have, the port none that a Service can have, or `path` neither empty nor a path.
    pub fn service(
        namespace: &str,
        name: &str,
        port: i64,
        path: &str,
        ca_bundle: impl Into<Bytes>,
    ) -> Result<Self, ServerError> {
        let error = || ServerError::Service {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            port,
        };
        let port = u16::try_from(port)
            .ok()
            .filter(|port| *port > 0)
            .ok_or_else(error)?;
        if !is_label(namespace) || !is_label(name) {
            return Err(error());
        }
        if !path.is_empty() && !is_path(path) {
            return Err(ServerError::Path(path.to_owned()));
        }
        let authority = format!("{name}.{namespace}.svc:{port}");
        let authority = authority.parse().map_err(|_| error())?;
        Ok(Self::new(authority, path, ca_bundle.into()))
    }

    /// The server at a URL, called at its path and below.
    ///
    /// # Errors
    ///
    /// When it is not a URL of https, or has a user, a query or a fragment.
    pub fn url(url: &str, ca_bundle: impl Into<Bytes>) -> Result<Self, ServerError> {
        let quoted = || url.to_owned();
        let parsed: Uri = url.parse().map_err(|_| ServerError::Url(quoted()))?;
        if parsed.scheme_str() != Some("https") {
            return Err(ServerError::Scheme(quoted()));
        }
        let authority = parsed.authority().ok_or_else(|| ServerError::Url(quoted()))?;
        if authority.as_str().contains('@') || parsed.query().is_some() || url.contains('#') {
            return Err(ServerError::Extra(quoted()));
        }
        let port = parsed.port_u16();
        // What stands behind the host and cannot be a port is none for `http`.
        if authority.host().is_empty() || (port.is_none() && authority.as_str() != authority.host()) {
            return Err(ServerError::Url(quoted()));
        }
        Ok(Self::new(authority.clone(), parsed.path(), ca_bundle.into()))
    }

    fn new(authority: Authority, prefix: &str, ca_bundle: Bytes) -> Self {
        let mut digest = [0; 8];
        digest.copy_from_slice(&Sha256::digest(&ca_bundle)[..8]);
        Self {
            authority,
            prefix: prefix.to_owned(),
            ca_bundle,
            digest,
        }
    }

    /// The same server, whatever is asked of it.
    #[cfg(feature = "client")]
    pub(crate) fn without_prefix(&self) -> Self {
        Self {
            prefix: String::new(),
            ..self.clone()
        }
    }

    /// The name that its certificate must have.
    pub fn host(&self) -> &str {
        self.authority.host()
    }

    /// Its name and port, which is 443 where it is not there.
    pub fn authority(&self) -> &str {
        self.authority.as_str()
    }

    /// Before what is asked of it.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// By whom it is trusted, PEM.
    pub fn ca_bundle(&self) -> &Bytes {
        &self.ca_bundle
    }
}

/// Whether a request may be sent to `path` and below as it is written.
pub fn is_path(path: &str) -> bool {
    path.starts_with('/') && !path.contains(['?', '#']) && path.parse::<PathAndQuery>().is_ok()
}

/// At each call: the trust bundle is known by its digest.
impl Hash for ServerReference {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.authority, &self.prefix, self.digest).hash(state);
    }
}

impl fmt::Debug for ServerReference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "https://{}{} trusted by ", self.authority, self.prefix)?;
        self.digest
            .iter()
            .try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_called_by_its_name() {
        let service = ServerReference::service("test1", "extension-service", 8443, "/x", "").unwrap();
        assert_eq!(service.authority(), "extension-service.test1.svc:8443");
        assert_eq!(service.host(), "extension-service.test1.svc");
        for (url, authority, prefix) in [
            ("https://example.com", "example.com", "/"),
            ("https://example.com:8443/x/", "example.com:8443", "/x/"),
            ("https://[::1]:8443", "[::1]:8443", "/"),
        ] {
            let server = ServerReference::url(url, "").unwrap();
            assert_eq!((server.authority(), server.prefix()), (authority, prefix));
        }
    }

    #[test]
    fn what_cannot_be_called_is_refused() {
        for (url, expected) in [
            ("", r#""" is not a URL"#),
            ("a b", r#""a b" is not a URL"#),
            ("example.com", r#""example.com" must begin with https://"#),
            (
                "http://example.com",
                r#""http://example.com" must begin with https://"#,
            ),
            (
                "https://a:b@example.com",
                r#""https://a:b@example.com" must have no user, query or fragment"#,
            ),
            (
                "https://example.com?a=b",
                r#""https://example.com?a=b" must have no user, query or fragment"#,
            ),
            (
                "https://example.com#a",
                r#""https://example.com#a" must have no user, query or fragment"#,
            ),
            (
                "https://example.com:99999",
                r#""https://example.com:99999" is not a URL"#,
            ),
        ] {
            assert_eq!(ServerReference::url(url, "").unwrap_err().to_string(), expected);
        }
        for (namespace, name, port) in [
            ("", "a", 443),
            ("a", "", 443),
            ("a/b", "c", 443),
            ("a", "b", 0),
            ("a", "b", 70_000),
        ] {
            assert!(ServerReference::service(namespace, name, port, "", "").is_err());
        }
        for path in ["", "/", "/x", "/x/y-z_1.2/", "/%20"] {
            assert!(
                ServerReference::service("a", "b", 443, path, "").is_ok(),
                "{path}"
            );
        }
        for path in [
            "x",
            "runtime-extensions/",
            "https://example.com",
            "/x?a=b",
            "/x#a",
            "/x y",
            "/x\n",
        ] {
            assert_eq!(
                ServerReference::service("a", "b", 443, path, ""),
                Err(ServerError::Path(path.into()))
            );
        }
    }
}
