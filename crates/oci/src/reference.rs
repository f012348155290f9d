//! References to images: `registry/repository:tag@digest`.

use std::{fmt, str::FromStr};

use crate::digest::ContentDigest;

/// An image reference with the rules of `docker pull` and Kubernetes (distribution's `reference` package):
/// the default registry is docker.io, with the default folder `library`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ImageReference {
    /// Host of the registry, and its port if the reference has one.
    pub registry: String,
    /// Repository in the registry.
    pub repository: String,
    /// Tag; `latest` if there is neither tag nor digest.
    pub tag: Option<String>,
    /// Digest of the manifest; it takes precedence over the tag.
    pub digest: Option<ContentDigest>,
    /// Whether the text contains the registry.
    pub is_qualified: bool,
}

/// Why a text is not an image reference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// The text is empty.
    #[error("image reference is empty")]
    Empty,
    /// The text is a URL.
    #[error("image reference {0:?} must not begin with http:// or https://: write REGISTRY/REPOSITORY")]
    Url(String),
    /// The registry is not a host.
    #[error("image reference {0:?}: the registry must be a host name or an address, with a port or without")]
    Registry(String),
    /// The repository is invalid.
    #[error(
        "image reference {0:?}: the repository must be of a-z and 0-9, with single . or _, __ or - between them, and / between its parts"
    )]
    Repository(String),
    /// The name is too long.
    #[error("image reference {0:?}: the name must have 255 characters at most")]
    TooLong(String),
    /// The tag is invalid.
    #[error(
        "image reference {0:?}: the tag must be of at most 128 letters, digits, _, . or -, and not begin with . or -"
    )]
    Tag(String),
    /// The digest is invalid.
    #[error(
        "image reference {0:?}: the digest must be sha256: and 64 digits, or sha512: and 128, of 0-9 and a-f"
    )]
    Digest(String),
}

/// The default registry.
pub const DOCKER_HUB: &str = "docker.io";

impl ImageReference {
    /// `registry/repository`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.registry, self.repository)
    }

    /// The version for requests: the digest, else the tag.
    pub fn version(&self) -> &str {
        match (&self.digest, &self.tag) {
            (Some(digest), _) => digest.as_str(),
            (None, Some(tag)) => tag,
            (None, None) => "latest",
        }
    }

    /// Returns the image with this digest in the same repository.
    pub fn with_digest(&self, digest: ContentDigest) -> Self {
        Self {
            tag: None,
            digest: Some(digest),
            ..self.clone()
        }
    }

    /// Returns the same version under another `registry/repository`.
    ///
    /// # Errors
    ///
    /// If that is not a valid name.
    pub fn with_name(&self, name: &str) -> Result<Self, ReferenceError> {
        let named: Self = name.parse()?;
        Ok(Self {
            tag: self.tag.clone(),
            digest: self.digest.clone(),
            ..named
        })
    }
}

impl FromStr for ImageReference {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        let written = || text.to_owned();
        if text.is_empty() {
            return Err(ReferenceError::Empty);
        }
        if text.starts_with("http://") || text.starts_with("https://") {
            return Err(ReferenceError::Url(written()));
        }
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => {
                let digest = digest.parse().map_err(|_| ReferenceError::Digest(written()))?;
                (rest, Some(digest))
            }
            None => (text, None),
        };
        let path = rest.rfind('/').map_or(0, |slash| slash + 1);
        let (name, tag) = match rest[path..].find(':') {
            Some(colon) => (&rest[..path + colon], Some(&rest[path + colon + 1..])),
            None => (rest, None),
        };
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return Err(ReferenceError::Tag(written()));
        }
        let (registry, repository) = match name.split_once('/') {
            Some((first, rest)) if is_registry_like(first) => (Some(first), rest),
            _ => (None, name),
        };
        if registry.is_some_and(|registry| !is_host(registry)) {
            return Err(ReferenceError::Registry(written()));
        }
        let is_qualified = registry.is_some();
        let registry = match registry {
            None | Some("index.docker.io") => DOCKER_HUB,
            Some(registry) => registry,
        };
        if !repository.split('/').all(is_component) {
            return Err(ReferenceError::Repository(written()));
        }
        let is_library = registry == DOCKER_HUB && !repository.contains('/');
        let repository = if is_library {
            format!("library/{repository}")
        } else {
            repository.to_owned()
        };
        if registry.len() + 1 + repository.len() > 255 {
            return Err(ReferenceError::TooLong(written()));
        }
        Ok(Self {
            registry: registry.to_owned(),
            repository,
            tag: tag.map(str::to_owned),
            digest,
            is_qualified,
        })
    }
}

impl fmt::Display for ImageReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(f, "@{digest}")?;
        }
        Ok(())
    }
}

/// Reports whether the part before the first slash is a registry rather than a folder.
fn is_registry_like(part: &str) -> bool {
    part == "localhost"
        || part.contains(['.', ':', '['])
        || part.bytes().any(|byte| byte.is_ascii_uppercase())
}

/// Accepts a host name, an IPv4 address or an IPv6 address in brackets, with or without a port.
fn is_host(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, "")) => (address, None),
            Some((address, port)) => match port.strip_prefix(':') {
                Some(port) => (address, Some(port)),
                None => return false,
            },
            None => return false,
        },
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let is_name = if text.starts_with('[') {
        host.parse::<std::net::Ipv6Addr>().is_ok()
    } else {
        host.split('.').all(|label| {
            let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            !label.is_empty()
                && label.bytes().all(is_inner)
                && !label.starts_with('-')
                && !label.ends_with('-')
        })
    };
    is_name && port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0))
}

fn is_tag(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (1..=128).contains(&text.len())
        && text.bytes().next().is_some_and(is_word)
        && text
            .bytes()
            .all(|byte| is_word(byte) || matches!(byte, b'.' | b'-'))
}

/// `[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*`
fn is_component(text: &str) -> bool {
    let is_alphanumeric = |character: char| matches!(character, 'a'..='z' | '0'..='9');
    let is_bounded = text.starts_with(is_alphanumeric) && text.ends_with(is_alphanumeric);
    is_bounded
        && text.split(is_alphanumeric).all(|separator| {
            matches!(separator, "" | "." | "_" | "__") || separator.bytes().all(|byte| byte == b'-')
        })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn references_parse_as_in_docker_pull() {
        for (text, read, version) in [
            ("busybox", "docker.io/library/busybox", "latest"),
            ("busybox:1.36", "docker.io/library/busybox:1.36", "1.36"),
            ("a/b", "docker.io/a/b", "latest"),
            ("index.docker.io/busybox", "docker.io/library/busybox", "latest"),
            ("localhost/a", "localhost/a", "latest"),
            ("localhost:5000/a:b", "localhost:5000/a:b", "b"),
            (
                "quay.io/o/b_c/d--e.f__g:V1.0-x",
                "quay.io/o/b_c/d--e.f__g:V1.0-x",
                "V1.0-x",
            ),
            ("[::1]:5000/a", "[::1]:5000/a", "latest"),
            ("[fd00::1]/a", "[fd00::1]/a", "latest"),
            ("Registry/a", "Registry/a", "latest"),
            ("10.0.0.1/a", "10.0.0.1/a", "latest"),
        ] {
            let reference: ImageReference = text.parse().unwrap();
            assert_eq!(reference.to_string(), read, "{text}");
            assert_eq!(reference.version(), version, "{text}");
        }
        let both: ImageReference = format!("quay.io/a:b@{DIGEST}").parse().unwrap();
        assert_eq!((both.tag.as_deref(), both.version()), (Some("b"), DIGEST));
    }

    #[test]
    fn invalid_references_are_refused_with_advice() {
        for (text, word) in [
            ("", "empty"),
            ("https://quay.io/a", "must not begin with"),
            ("quay.io/A", "repository"),
            ("quay.io/", "repository"),
            ("quay.io//a", "repository"),
            ("quay.io/a..b", "repository"),
            ("quay.io/a___b", "repository"),
            ("quay.io/-a", "repository"),
            ("quay.io/../a", "repository"),
            ("/a", "repository"),
            ("quay.io/a:", "tag"),
            ("quay.io/a:-b", "tag"),
            ("quay.io/a@sha256:0", "digest"),
            ("quay.io/a@b@c", "digest"),
            ("quay.io:0/a", "registry"),
            ("quay.io:x/a", "registry"),
            ("-a.b/a", "registry"),
            ("[::1/a", "registry"),
            (&format!("quay.io/{}", "a".repeat(250)), "255"),
        ] {
            let error = text.parse::<ImageReference>().unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn formatted_references_parse_back(text in "[a-zA-Z0-9._:/@\\[\\]-]{0,40}") {
            if let Ok(reference) = text.parse::<ImageReference>() {
                let again: ImageReference = reference.to_string().parse().unwrap();
                prop_assert_eq!(again.to_string(), reference.to_string());
                prop_assert_eq!(again.name(), reference.name());
            }
        }

        #[test]
        fn arbitrary_text_never_panics(text in ".{0,60}") {
            let _ = text.parse::<ImageReference>();
        }
    }
}
