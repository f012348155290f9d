//! What the Secrets that are asked for give, read once for all targets that ask for one.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::Value;
use windlass_cluster::{Index, IndexedObject};
use windlass_object::ObjectKey;
use windlass_trust::{injection::Injection, pki::Certificate, trust_bundle::TrustBundle};

use super::secret::{is_of_serving_certificate, read_trust};

/// What the Secrets that are asked for give.
#[derive(Default)]
pub(super) struct ReadSecrets(Mutex<HashMap<ObjectKey, Arc<ReadSecret>>>);

/// What a Secret gives, as it was read.
pub(super) struct ReadSecret {
    indexed: IndexedObject,
    secret: Arc<Value>,
    /// What is to be injected, or why nothing can be.
    pub(super) injection: Result<Arc<Injection>, String>,
    /// Until its next certificate ends.
    until: Timestamp,
    /// Whether all of its targets were once seen to carry what it gives.
    is_everywhere: AtomicBool,
}

// === impl ReadSecrets ===

impl ReadSecrets {
    /// What a Secret gives now; `None` where there is none, or where the rotation of a ServingCertificate gives its targets
    /// what it would.
    pub(super) fn find(&self, key: &ObjectKey, index: &Index, now: Timestamp) -> Option<Arc<ReadSecret>> {
        let mut secrets = self.0.lock();
        let Some(indexed) = index.find_indexed(key) else {
            secrets.remove(key);
            return None;
        };
        let known = secrets.get(key);
        let known = known
            .filter(|known| known.indexed == indexed && now < known.until)
            .cloned();
        let read = known.unwrap_or_else(|| {
            let read = Arc::new(ReadSecret::new(indexed, key, now));
            secrets.insert(key.clone(), read.clone());
            read
        });
        let is_direct = read.injection.is_err() || !is_of_serving_certificate(&read.secret, key, index);
        is_direct.then_some(read)
    }
}

// === impl ReadSecret ===

impl ReadSecret {
    /// Whether all of its targets carry what it gives, or were once seen to; `look` looks at all of them.
    pub(super) fn is_everywhere(&self, look: impl FnOnce() -> bool) -> bool {
        if !self.is_everywhere.load(Ordering::Relaxed) && look() {
            self.is_everywhere.store(true, Ordering::Relaxed);
        }
        self.is_everywhere.load(Ordering::Relaxed)
    }

    fn new(indexed: IndexedObject, key: &ObjectKey, now: Timestamp) -> Self {
        let secret = indexed.read();
        let trust = read_trust(&secret, key, now);
        let certificates = trust.as_ref().map(TrustBundle::certificates).unwrap_or_default();
        let until = certificates.iter().map(Certificate::not_after).min();
        Self {
            indexed,
            secret,
            until: until.unwrap_or(Timestamp::MAX),
            is_everywhere: AtomicBool::new(false),
            injection: trust.map(|trust| Arc::new(Injection::new(trust, None))),
        }
    }
}
