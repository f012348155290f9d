//! An index of policies by kind and namespace.

use std::collections::HashMap;

/// Indexes of policies, ordered, by namespace, apiVersion and kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct PolicyIndex {
    by_namespace: HashMap<String, KindIndex>,
}

/// Indexes of policies by apiVersion and kind.
#[derive(Clone, Debug, Default)]
struct KindIndex {
    for_all: Vec<usize>,
    by_kind: HashMap<String, HashMap<String, Vec<usize>>>,
}

impl PolicyIndex {
    /// Adds a policy for these apiVersions and kinds, or for all if there are none, in a namespace or, if it
    /// is empty, everywhere. Its index must be greater than all earlier ones.
    pub(crate) fn add<'a>(
        &mut self,
        place: usize,
        namespace: &str,
        kinds: impl Iterator<Item = (&'a str, &'a str)>,
    ) {
        let index = self.by_namespace.entry(namespace.to_owned()).or_default();
        let mut is_for_all = true;
        for (api_version, kind) in kinds {
            is_for_all = false;
            let by_kind = index.by_kind.entry(api_version.to_owned()).or_default();
            let places = by_kind.entry(kind.to_owned()).or_default();
            if places.last() != Some(&place) {
                places.push(place);
            }
        }
        if is_for_all {
            index.for_all.push(place);
        }
    }

    /// Returns the indexes of policies for objects of a kind in a namespace, in order.
    pub(crate) fn candidates(&self, namespace: &str, (api_version, kind): (&str, &str)) -> Vec<usize> {
        let everywhere = self.by_namespace.get("");
        let inside = self.by_namespace.get(namespace).filter(|_| !namespace.is_empty());
        let mut places = Vec::new();
        for index in everywhere.into_iter().chain(inside) {
            places.extend_from_slice(&index.for_all);
            let of_kind = index.by_kind.get(api_version).and_then(|kinds| kinds.get(kind));
            places.extend(of_kind.into_iter().flatten());
        }
        places.sort_unstable();
        places
    }
}
