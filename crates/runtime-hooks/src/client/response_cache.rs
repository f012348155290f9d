//! A cache of responses.

use std::time::Duration;

use bytes::Bytes;
use moka::sync::Cache;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::registry::RegisteredHandler;

/// Successful responses, by handler and request.
#[derive(Clone, Debug)]
pub(super) struct ResponseCache(Cache<CacheKey, Bytes>);

/// A hash of the handler, its ExtensionConfig's resourceVersion, and the request with its settings.
pub(super) type CacheKey = [u8; 32];

/// How long a response is cached (`internal/runtime/client/client.go`).
const GOOD_FOR: Duration = Duration::from_secs(600);

/// The maximum size of all responses together, in bytes.
const LARGEST: u64 = 32 << 20;

impl ResponseCache {
    pub(super) fn new() -> Self {
        let weight = |_: &CacheKey, body: &Bytes| u32::try_from(body.len() + 128).unwrap_or(u32::MAX);
        Self(
            Cache::builder()
                .weigher(weight)
                .max_capacity(LARGEST)
                .time_to_live(GOOD_FOR)
                .build(),
        )
    }

    pub(super) fn get(&self, key: &CacheKey) -> Option<Bytes> {
        self.0.get(key)
    }

    /// Stores a copy, so that the response does not occupy the transport's memory for answers.
    pub(super) fn insert(&self, key: CacheKey, body: &[u8]) {
        self.0.insert(key, Bytes::copy_from_slice(body));
    }
}

/// Returns the key of a request to a handler, independent of the order of fields.
pub(super) fn key(handler: &RegisteredHandler, request: &Value) -> CacheKey {
    let mut hash = Sha256::new();
    let parts = [
        &handler.name,
        &handler.config.resource_version,
        &handler.hook.api_version,
        &handler.hook.hook,
    ];
    for part in parts {
        hash_text(&mut hash, part);
    }
    hash_value(&mut hash, request);
    hash.finalize().into()
}

fn hash_text(hash: &mut Sha256, text: &str) {
    hash.update(text.len().to_be_bytes());
    hash.update(text);
}

fn hash_value(hash: &mut Sha256, value: &Value) {
    match value {
        Value::Array(items) => {
            hash.update(b"[");
            hash.update(items.len().to_be_bytes());
            items.iter().for_each(|item| hash_value(hash, item));
        }
        Value::Object(fields) => {
            hash.update(b"{");
            hash.update(fields.len().to_be_bytes());
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            for (name, value) in fields {
                hash_text(hash, name);
                hash_value(hash, value);
            }
        }
        Value::String(text) => {
            hash.update(b"\"");
            hash_text(hash, text);
        }
        scalar => {
            hash.update(b"=");
            hash_text(hash, &scalar.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, sync::Arc};

    use proptest::prelude::*;
    use serde_json::json;
    use webhook_transport::ServerReference;

    use super::*;
    use crate::{
        Hook,
        cluster_api::BeforeClusterCreate,
        discovery::{FailurePolicy, Handler},
        registry::ExtensionConfig,
    };

    fn handler(name: &str, resource_version: &str) -> RegisteredHandler {
        let config = ExtensionConfig {
            name: "ext1".into(),
            resource_version: resource_version.into(),
            server: ServerReference::url("https://example.com", "").unwrap(),
            namespace_selector: json!({}),
            settings: BTreeMap::new(),
        };
        let handler = Handler {
            name: name.into(),
            hook: BeforeClusterCreate::reference(),
            timeout_seconds: Some(1),
            failure_policy: FailurePolicy::Fail,
        };
        RegisteredHandler::new(Arc::new(config), handler)
    }

    #[test]
    fn the_key_covers_handler_and_request() {
        let request = json!({"settings": {"a": "1", "b": "2"}, "list": [1, "1", null]});
        let first = key(&handler("a", "1"), &request);
        let reordered = json!({"list": [1, "1", null], "settings": {"b": "2", "a": "1"}});
        assert_eq!(key(&handler("a", "1"), &reordered), first);
        for (handler, request) in [
            (handler("b", "1"), &request),
            (handler("a", "2"), &request),
            (
                handler("a", "1"),
                &json!({"settings": {"a": "1", "b": "3"}, "list": [1, "1", null]}),
            ),
            (
                handler("a", "1"),
                &json!({"settings": {"a": "1", "b": "2"}, "list": [1, 1, null]}),
            ),
        ] {
            assert_ne!(key(&handler, request), first);
        }
    }

    proptest! {
        #[test]
        fn other_requests_have_other_keys(one in "[a-z\"{}:,]{0,6}", other in "[a-z\"{}:,]{0,6}", more in "[a-w]{0,2}") {
            let keyed = |one: &str, other: &str| key(&handler("a", "1"), &json!({(more.clone()): one, "x": [other]}));
            prop_assert_eq!(keyed(&one, &other) == keyed(&other, &one), one == other);
        }
    }
}
