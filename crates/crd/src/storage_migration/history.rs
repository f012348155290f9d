//! How long a storage version has been one without a break.

use serde_json::Value;
use windlass_object::object;

use crate::storage_version;

/// Generations of one CustomResourceDefinition, without a gap, over which its storage version has stayed the same.
///
/// Each write that changes `spec` makes the generation one higher (`PrepareForUpdate` of the API server's
/// `customResourceDefinitionStrategy`): a storage version that two neighbouring generations share has not moved there and
/// back between them. Between two that are no neighbours it may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageVersionHistory {
    pub(super) uid: String,
    pub(super) version: String,
    pub(super) first: i64,
    pub(super) last: i64,
}

// === impl StorageVersionHistory ===

impl StorageVersionHistory {
    /// What one look at a CRD says; `None` where it has no storage version.
    pub fn of(crd: &Value) -> Option<Self> {
        let generation = generation(crd);
        Some(Self {
            uid: object::text(crd, "/metadata/uid")?.to_owned(),
            version: storage_version(crd)?.to_owned(),
            first: generation,
            last: generation,
        })
    }

    /// Goes on with what was seen next, or begins anew with it.
    pub fn see(&mut self, next: Self) {
        if self.is_continued_by(&next) {
            self.first = self.first.min(next.first);
            self.last = self.last.max(next.last);
        } else {
            *self = next;
        }
    }

    /// Whether it reaches the generation that `definition` has.
    pub fn reaches(&self, crd: &Value) -> bool {
        object::text(crd, "/metadata/uid") == Some(&self.uid) && self.last >= generation(crd)
    }

    /// Whether nothing lies between this and `other`.
    pub(super) fn is_continued_by(&self, other: &Self) -> bool {
        let is_same = self.uid == other.uid && self.version == other.version;
        is_same && other.first <= self.last.saturating_add(1) && self.first <= other.last.saturating_add(1)
    }
}

/// How often the spec of an object was changed.
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
        StorageVersionHistory::of(&crd).unwrap()
    }

    #[test]
    fn it_goes_on_from_neighbour_to_neighbour_and_ends_with_every_gap() {
        for (next, first) in [
            (seen("a", "v2", 5), 4),
            (seen("a", "v2", 4), 4),
            (seen("a", "v2", 6), 6),
            (seen("a", "v1", 5), 5),
            (seen("b", "v2", 5), 5),
        ] {
            let mut tenure = seen("a", "v2", 4);
            let last = next.last;
            tenure.see(next);
            assert_eq!((tenure.first, tenure.last), (first, last));
        }
    }

    #[test]
    fn what_comes_late_shortens_nothing() {
        let mut tenure = seen("a", "v2", 4);
        for generation in [5, 6, 5, 4, 3] {
            tenure.see(seen("a", "v2", generation));
        }
        assert_eq!((tenure.first, tenure.last), (3, 6));
    }

    #[test]
    fn a_definition_without_a_storage_version_has_none() {
        assert_eq!(
            StorageVersionHistory::of(&json!({"metadata": {"uid": "a", "generation": 1}})),
            None
        );
    }
}
