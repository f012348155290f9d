//! The server to call.

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

/// A server: the name that its certificate must have, and its trust bundle.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerReference {
    pub(crate) authority: Authority,
    prefix: String,
    ca_bundle: Bytes,
    /// A digest of the trust bundle, which is long, for logs and lookups.
    digest: [u8; 8],
}

/// Why a server cannot be called.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the message explains each field")]
pub enum ServerError {
    /// The text has no host or port.
    #[error("{0:?} is not a URL")]
    Url(String),
    /// The URL does not use https.
    #[error("{0:?} must begin with https://")]
    Scheme(String),
    /// The URL has a part that is never sent.
    #[error("{0:?} must have no user, query or fragment")]
    Extra(String),
    /// The name, namespace or port is not valid for a Service.
    #[error("Service {namespace}/{name}, port {port}, cannot be called")]
    Service {
        namespace: String,
        name: String,
        port: i64,
    },
    /// The path of a Service has a part that is never sent, or does not start with a slash.
    #[error("path {0:?} must begin with /, and have no query or fragment")]
    Path(String),
}

impl ServerReference {
    /// The server behind a Service, called below `path` by the name `<name>.<namespace>.svc`. `ca_bundle` is
    /// PEM; if it is empty, the system's root certificates apply, if the transport allows that.
    ///
    /// # Errors
    ///
    /// When a name or the port is not valid for a Service, or `path` is neither empty nor a valid path.
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
        if !path.is_empty() && !is_url_path(path) {
            return Err(ServerError::Path(path.to_owned()));
        }
        let authority = format!("{name}.{namespace}.svc:{port}");
        let authority = authority.parse().map_err(|_| error())?;
        Ok(Self::new(authority, path, ca_bundle.into()))
    }

    /// The server at a URL, called below its path.
    ///
    /// # Errors
    ///
    /// When the URL is not https, or has a user, a query or a fragment.
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
        // `http` treats text after the host that is not a valid port as absent.
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

    /// Returns the same server with an empty prefix.
    #[cfg(feature = "client")]
    pub(crate) fn without_prefix(&self) -> Self {
        Self {
            prefix: String::new(),
            ..self.clone()
        }
    }

    /// The name that the certificate must have.
    pub fn host(&self) -> &str {
        self.authority.host()
    }

    /// The host name and port; the default port is 443.
    pub fn authority(&self) -> &str {
        self.authority.as_str()
    }

    /// The prefix of the path of each request.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The trust bundle, in PEM.
    pub fn ca_bundle(&self) -> &Bytes {
        &self.ca_bundle
    }
}

/// Reports whether `path` can be sent verbatim as the start of a request path.
pub fn is_url_path(path: &str) -> bool {
    path.starts_with('/') && !path.contains(['?', '#']) && path.parse::<PathAndQuery>().is_ok()
}

/// Runs for every call, so it hashes the digest instead of the trust bundle.
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
    fn a_server_reference_has_host_port_and_path() {
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
    fn invalid_servers_are_rejected() {
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
