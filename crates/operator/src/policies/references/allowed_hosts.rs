//! The servers that policies may call.

use std::{fmt, str::FromStr};

use http::uri::Authority;
use thiserror::Error;

/// The servers that policies may call; none by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedHosts(Vec<AllowedHost>);

/// Servers that policies may call: `HOST`, `HOST:PORT`, or `*.DOMAIN` for all subdomains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedHost {
    /// In lower case.
    name: String,
    /// Whether this selects the subdomains of the name, and not the name.
    is_domain: bool,
    /// `None` for the default port of the scheme.
    port: Option<u16>,
}

/// A text is not a host for policies.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0:?} is not a host: use HOST, HOST:PORT or *.DOMAIN")]
pub struct InvalidHost(
    /// The text that was parsed.
    String,
);

/// The server that a URL names.
struct UrlHost {
    name: String,
    port: u16,
}

impl AllowedHosts {
    /// Reports whether no server is allowed.
    pub(in super::super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Checks whether policies may call the server of a URL.
    ///
    /// # Errors
    ///
    /// When they may not, with what to do about it.
    pub(in super::super) fn check(&self, url: &str) -> Result<(), String> {
        let called = UrlHost::parse(url).ok_or("the URL names no server: use https://HOST/PATH")?;
        if self.0.iter().any(|allowed| allowed.matches(&called)) {
            return Ok(());
        }
        let UrlHost { name, port } = called;
        Err(format!(
            "{name}:{port} is not allowed: start windlass with --policy-http-host={name}:{port}"
        ))
    }

    /// Reports whether a server is allowed by its full name, which permits any address that the name resolves
    /// to.
    pub(super) fn has_name(&self, host: &str) -> bool {
        let host = normalized(host);
        self.0
            .iter()
            .any(|allowed| !allowed.is_domain && allowed.name == host)
    }
}

impl FromIterator<AllowedHost> for AllowedHosts {
    fn from_iter<T: IntoIterator<Item = AllowedHost>>(hosts: T) -> Self {
        Self(hosts.into_iter().collect())
    }
}

fn normalized(host: &str) -> String {
    host.trim_end_matches('.').to_ascii_lowercase()
}

impl AllowedHost {
    fn matches(&self, called: &UrlHost) -> bool {
        let is_port = match self.port {
            Some(port) => port == called.port,
            None => [80, 443].contains(&called.port),
        };
        let is_name = match self.is_domain {
            true => called
                .name
                .strip_suffix(&self.name)
                .and_then(|below| below.strip_suffix('.'))
                .is_some_and(|below| !below.is_empty()),
            false => called.name == self.name,
        };
        is_port && is_name
    }
}

impl FromStr for AllowedHost {
    type Err = InvalidHost;

    fn from_str(text: &str) -> Result<Self, InvalidHost> {
        let invalid = || InvalidHost(text.to_owned());
        let (is_domain, rest) = match text.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let authority: Authority = rest.parse().map_err(|_| invalid())?;
        let name = normalized(authority.host());
        let is_name = |character: char| character.is_ascii_alphanumeric() || "-._:[]".contains(character);
        let is_port_left_out = rest.len() == authority.host().len();
        let is_valid = !name.is_empty()
            && !rest.contains('@')
            && name.chars().all(is_name)
            && (authority.port_u16().is_some() || is_port_left_out);
        let port = authority.port_u16();
        is_valid
            .then_some(Self {
                name,
                is_domain,
                port,
            })
            .ok_or_else(invalid)
    }
}

impl fmt::Display for AllowedHost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let star = if self.is_domain { "*." } else { "" };
        write!(formatter, "{star}{}", self.name)?;
        match self.port {
            Some(port) => write!(formatter, ":{port}"),
            None => Ok(()),
        }
    }
}

impl UrlHost {
    /// Parses a URL. Its path and query may still contain placeholders.
    fn parse(url: &str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let default = match scheme {
            "https" => 443,
            "http" => 80,
            _ => return None,
        };
        let authority: Authority = rest.split(['/', '?', '#']).next()?.parse().ok()?;
        // The HTTP client ignores user information before the host.
        if authority.as_str().contains('@') {
            return None;
        }
        let has_port = authority.as_str().len() > authority.host().len();
        let port = match authority.port_u16() {
            Some(port) => port,
            None if has_port => return None,
            None => default,
        };
        Some(Self {
            name: normalized(authority.host()),
            port,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_allowed_hosts_pass_the_check() {
        let hosts: AllowedHosts = [
            "a.example.com",
            "*.in.example.com",
            "b:8080",
            "[::1]:9",
            "10.0.0.1",
        ]
        .into_iter()
        .map(|host| host.parse::<AllowedHost>().unwrap())
        .collect();
        for (url, is_allowed) in [
            ("https://a.example.com/x", true),
            ("https://A.Example.com./x", true),
            ("http://a.example.com", true),
            ("https://a.example.com:8443/x", false),
            ("https://xa.example.com/", false),
            ("https://a.example.com.evil.org/", false),
            ("https://a.example.com@evil.org/", false),
            ("https://evil.org#a.example.com", false),
            ("https://evil.org\\@a.example.com/", false),
            ("https://x.in.example.com/{{metadata.name}}", true),
            ("https://x.y.in.example.com/", true),
            ("https://in.example.com/", false),
            ("https://xin.example.com/", false),
            ("http://b:8080/", true),
            ("http://b/", false),
            ("http://b:/", false),
            ("http://[::1]:9/", true),
            ("http://10.0.0.1/", true),
            ("http://10.0.0.2/", false),
            ("ftp://a.example.com/", false),
            ("a.example.com", false),
        ] {
            assert_eq!(hosts.check(url).is_ok(), is_allowed, "{url}");
        }
        assert!(AllowedHosts::default().check("https://a.example.com/").is_err());
        assert!(hosts.has_name("A.example.com."));
        assert!(!hosts.has_name("x.in.example.com"), "a domain allows many hosts");
    }

    #[test]
    fn an_invalid_host_is_rejected() {
        for text in [
            "",
            "*",
            "*.",
            "a/b",
            "https://a",
            "a@b",
            "a:",
            "a:x",
            "*a.b",
            "a.*.b",
            "a b",
        ] {
            assert!(text.parse::<AllowedHost>().is_err(), "{text:?}");
        }
        for text in ["a", "a.b:1", "*.a.b", "*.a.b:1", "[::1]:9"] {
            assert_eq!(text.parse::<AllowedHost>().unwrap().to_string(), text);
        }
    }
}
