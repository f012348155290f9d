//! How long a CRD has had its storage version without interruption.

use serde_json::Value;
use windlass_object::object;

use crate::storage_version;

/// A gapless range of generations of one CustomResourceDefinition with the same storage version.
///
/// Each change of `spec` increments the generation (`PrepareForUpdate` of the API server's
/// `customResourceDefinitionStrategy`). So a storage version that two consecutive generations share did not
/// change in between. Between other generations it may have changed back and forth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageVersionHistory {
    pub(super) uid: String,
    pub(super) version: String,
    pub(super) first: i64,
    pub(super) last: i64,
}

impl StorageVersionHistory {
    /// Returns the history from a single observation of a CRD; `None` without a storage version.
    pub fn from_crd(crd: &Value) -> Option<Self> {
        let generation = generation(crd);
        Some(Self {
            uid: object::text(crd, "/metadata/uid")?.to_owned(),
            version: storage_version(crd)?.to_owned(),
            first: generation,
            last: generation,
        })
    }

    /// Extends the history by the next observation, or restarts it.
    pub fn record(&mut self, next: Self) {
        if self.is_continued_by(&next) {
            self.first = self.first.min(next.first);
            self.last = self.last.max(next.last);
        } else {
            *self = next;
        }
    }

    /// Reports whether the history includes the generation of `crd`.
    pub fn reaches(&self, crd: &Value) -> bool {
        object::text(crd, "/metadata/uid") == Some(&self.uid) && self.last >= generation(crd)
    }

    /// Reports whether there is no gap between this and `other`.
    pub(super) fn is_continued_by(&self, other: &Self) -> bool {
        let is_same = self.uid == other.uid && self.version == other.version;
        is_same && other.first <= self.last.saturating_add(1) && self.first <= other.last.saturating_add(1)
    }
}

pub(super) fn generation(object: &Value) -> i64 {
    object
        .pointer("/metadata/generation")
        .and_then(Value::as_i64)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn seen(uid: &str, version: &str, generation: i64) -> StorageVersionHistory {
        let crd = json!({"metadata": {"uid": uid, "generation": generation},
            "spec": {"versions": [{"name": version, "storage": true}]}});
        StorageVersionHistory::from_crd(&crd).unwrap()
    }

    #[test]
    fn a_history_extends_over_adjacent_generations_only() {
        for (next, first) in [
            (seen("a", "v2", 5), 4),
            (seen("a", "v2", 4), 4),
            (seen("a", "v2", 6), 6),
            (seen("a", "v1", 5), 5),
            (seen("b", "v2", 5), 5),
        ] {
            let mut history = seen("a", "v2", 4);
            let last = next.last;
            history.record(next);
            assert_eq!((history.first, history.last), (first, last));
        }
    }

    #[test]
    fn late_observations_do_not_shorten_a_history() {
        let mut history = seen("a", "v2", 4);
        for generation in [5, 6, 5, 4, 3] {
            history.record(seen("a", "v2", generation));
        }
        assert_eq!((history.first, history.last), (3, 6));
    }

    #[test]
    fn a_crd_without_a_storage_version_has_no_history() {
        assert_eq!(
            StorageVersionHistory::from_crd(&json!({"metadata": {"uid": "a", "generation": 1}})),
            None
        );
    }
}
