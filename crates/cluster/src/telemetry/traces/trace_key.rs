//! Ids of traces and spans: hashes of stored state, so that every process derives the same ids.

use opentelemetry::trace::{SpanId, TraceId};
use sha2::{Digest, Sha256};

/// The identity of a trace: subject, object, and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceKey {
    trace: TraceId,
    root: SpanId,
}

impl TraceKey {
    /// Identifies the trace of the `number`th `subject`, for example "rotation", of the object with this uid.
    pub fn new(subject: &str, uid: &str, number: i64) -> Self {
        let digest = hash(&[subject, uid, &number.to_string()]);
        Self {
            trace: TraceId::from_bytes(first(&digest)),
            root: SpanId::from_bytes(first(&digest[16..])),
        }
    }

    /// Returns the trace id.
    pub fn trace(&self) -> TraceId {
        self.trace
    }

    /// Returns the id of the root span.
    pub fn root(&self) -> SpanId {
        self.root
    }

    /// Returns the id of the span that these words identify.
    pub fn span(&self, words: &[&str]) -> SpanId {
        let trace = self.trace.to_string();
        let words: Vec<_> = [trace.as_str()]
            .into_iter()
            .chain(words.iter().copied())
            .collect();
        SpanId::from_bytes(first(&hash(&words)))
    }
}

/// Hashes words unambiguously: each is followed by a byte that no word contains.
fn hash(words: &[&str]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for word in words {
        hash.update(word);
        hash.update([0]);
    }
    hash.finalize().into()
}

fn first<const LENGTH: usize>(bytes: &[u8]) -> [u8; LENGTH] {
    let mut first = [0; LENGTH];
    for (first, byte) in first.iter_mut().zip(bytes) {
        *first = *byte;
    }
    first
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const UID: &str = "2f6c9a4e-5f0e-4d5a-9a51-0d4a4f7f1c11";

    /// Compatible with earlier releases: a rotation may start under one and end under the next.
    #[test]
    fn every_process_derives_the_same_ids() {
        for (subject, number, trace, root, phase) in [
            (
                "rotation",
                2,
                "0062e36a1b173ee4164763e42491ea59",
                "7635c3e1ac8db644",
                "cbafe10af60b2c58",
            ),
            (
                "install",
                1,
                "662f9e15bf6071ec553038f673f9e858",
                "3b9141966c5997b6",
                "f2d38e204d14b260",
            ),
        ] {
            let key = TraceKey::new(subject, UID, number);
            assert_eq!(key.trace().to_string(), trace);
            assert_eq!(key.root().to_string(), root);
            assert_eq!(key.span(&["phase", "Signing"]).to_string(), phase);
        }
    }

    #[test]
    fn ids_are_unique() {
        let keys = [
            TraceKey::new("rotation", UID, 1),
            TraceKey::new("rotation", UID, 11),
            TraceKey::new("install", UID, 1),
            TraceKey::new("rotation", "another", 1),
            TraceKey::new("rotation1", UID, 1),
        ];
        let traces: BTreeSet<_> = keys.iter().map(|key| key.trace().to_string()).collect();
        assert_eq!(traces.len(), keys.len());
        let spans: BTreeSet<_> = keys
            .iter()
            .flat_map(|key| {
                [
                    key.root(),
                    key.span(&["a", "b"]),
                    key.span(&["ab"]),
                    key.span(&["a"]),
                ]
            })
            .map(|span| span.to_string())
            .collect();
        assert_eq!(spans.len(), keys.len() * 4);
    }
}
