//! Reads bodies of responses, with limits on size and time.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::{RegistryError, http_clients::causes};
use crate::digest::DigestVerifier;

/// A body that is read as a stream.
pub(super) struct ResponseBody {
    pub(super) host: String,
    pub(super) body: Incoming,
    pub(super) idle_timeout: Duration,
}

/// The initial capacity, before any data arrives.
const RESERVED: u64 = 1 << 20;

/// The maximum number of bytes that are read of an error.
const ERROR_BYTES: u64 = 16 << 10;

impl ResponseBody {
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, RegistryError> {
        loop {
            let frame = match tokio::time::timeout(self.idle_timeout, self.body.frame()).await {
                Ok(Some(Ok(frame))) => frame,
                Ok(None) => return Ok(None),
                Ok(Some(Err(error))) => {
                    return Err(RegistryError::Interrupted {
                        host: self.host.clone(),
                        cause: causes(&error),
                    });
                }
                Err(_) => {
                    return Err(RegistryError::Idle {
                        host: self.host.clone(),
                        after: self.idle_timeout,
                    });
                }
            };
            if let Ok(part) = frame.into_data() {
                return Ok(Some(part));
            }
        }
    }

    /// Reads the body; fails as soon as it exceeds `limit` bytes.
    pub(super) async fn read(mut self, what: &str, limit: u64) -> Result<Bytes, RegistryError> {
        let mut content = BytesMut::new();
        while let Some(part) = self.next().await? {
            if (content.len() + part.len()) as u64 > limit {
                return Err(RegistryError::TooLarge {
                    host: self.host,
                    what: what.to_owned(),
                    limit,
                });
            }
            content.extend_from_slice(&part);
        }
        Ok(content.freeze())
    }

    /// Reads the body, hashing it on the way, and verifies its size and digest.
    pub(super) async fn verified(
        mut self,
        what: &str,
        size: u64,
        digest: &crate::ContentDigest,
    ) -> Result<Bytes, RegistryError> {
        let mut content = BytesMut::with_capacity(usize::try_from(size.min(RESERVED)).unwrap_or_default());
        let mut verifier: DigestVerifier = digest.verifier();
        let wrong_size = |host: &str, actual: u64| RegistryError::Size {
            host: host.to_owned(),
            what: what.to_owned(),
            expected: size,
            actual,
        };
        while let Some(part) = self.next().await? {
            if (content.len() + part.len()) as u64 > size {
                return Err(wrong_size(&self.host, size + 1));
            }
            verifier.update(&part);
            content.extend_from_slice(&part);
        }
        if (content.len() as u64) < size {
            return Err(wrong_size(&self.host, content.len() as u64));
        }
        match verifier.finish() {
            Ok(()) => Ok(content.freeze()),
            Err(actual) => Err(RegistryError::Digest {
                host: self.host,
                what: what.to_owned(),
                expected: digest.clone(),
                actual,
            }),
        }
    }

    /// The registry's error codes, in brackets (distribution specification, "Error Codes"). Its messages are
    /// dropped, since they may contain anything.
    pub(super) async fn error_codes(self) -> String {
        #[derive(serde::Deserialize)]
        struct Errors {
            errors: Vec<Entry>,
        }
        #[derive(serde::Deserialize)]
        struct Entry {
            code: String,
        }
        let content = self.read("an error", ERROR_BYTES).await.unwrap_or_default();
        let Ok(Errors { errors }) = serde_json::from_slice(&content) else {
            return String::new();
        };
        let is_code = |code: &&str| {
            let is_letter = |byte: u8| byte.is_ascii_uppercase() || byte == b'_';
            (1..=40).contains(&code.len()) && code.bytes().all(is_letter)
        };
        let codes: Vec<_> = errors
            .iter()
            .map(|entry| entry.code.as_str())
            .filter(is_code)
            .take(3)
            .collect();
        if codes.is_empty() {
            String::new()
        } else {
            format!(" ({})", codes.join(", "))
        }
    }
}
