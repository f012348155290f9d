//! The credentials of a request.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, header::AUTHORIZATION};
use sha2::{Digest, Sha256};

/// A bearer token of the cluster, which is never logged.
pub(crate) struct BearerToken(String);

/// The key of a token in the cache.
pub(crate) type TokenDigest = [u8; 32];

/// Length limit of a token. Those of ServiceAccounts have about 1000 characters, those of OpenID Connect a
/// few thousand.
const MAX_LENGTH: usize = 16 * 1024;

impl BearerToken {
    /// Returns the token from `Authorization: Bearer TOKEN`, or the password from `Basic` authentication with
    /// any user name, which browsers prompt for (RFC 6750, RFC 7617). Returns `None` if there is no possible
    /// token.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let (scheme, credentials) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
        let credentials = credentials.trim();
        if credentials.len() > 2 * MAX_LENGTH {
            return None;
        }
        let token = if scheme.eq_ignore_ascii_case("bearer") {
            credentials.to_owned()
        } else if scheme.eq_ignore_ascii_case("basic") {
            let decoded = String::from_utf8(STANDARD.decode(credentials).ok()?).ok()?;
            decoded.split_once(':')?.1.trim().to_owned()
        } else {
            return None;
        };
        (!token.is_empty() && token.len() <= MAX_LENGTH).then_some(Self(token))
    }

    /// Returns the token for a TokenReview.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn digest(&self) -> TokenDigest {
        Sha256::digest(&self.0).into()
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn read(header: &str) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_str(header).unwrap());
        BearerToken::from_headers(&headers).map(|token| token.0)
    }

    fn basic(text: &str) -> String {
        format!("Basic {}", STANDARD.encode(text))
    }

    #[test]
    fn bearer_and_basic_tokens_are_read() {
        for (header, expected) in [
            ("Bearer abc".to_owned(), Some("abc")),
            ("bearer  abc ".to_owned(), Some("abc")),
            (basic("anybody:abc"), Some("abc")),
            (basic(":a:b"), Some("a:b")),
            (basic(":abc\n"), Some("abc")),
            (basic("anybody:"), None),
            (basic("abc"), None),
            ("Basic abc".to_owned(), None),
            ("Digest abc".to_owned(), None),
            ("Bearer".to_owned(), None),
            ("Bearer ".to_owned(), None),
            (format!("Bearer {}", "a".repeat(MAX_LENGTH + 1)), None),
            (basic(&":".repeat(2 * MAX_LENGTH)), None),
        ] {
            assert_eq!(read(&header).as_deref(), expected, "{header:.40}");
        }
        assert!(BearerToken::from_headers(&HeaderMap::new()).is_none());
    }

    proptest! {
        #[test]
        fn reading_any_header_never_panics(header in "(Bearer|Basic|basic)? ?[ -~]{0,60}") {
            read(&header);
        }
    }
}
