//! Which policies may be for an object, without asking those that are not.

use std::collections::HashMap;

/// Places of policies in their order, by namespace, apiVersion and kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct PolicyIndex {
    by_namespace: HashMap<String, KindIndex>,
}

/// Places of policies by apiVersion and kind.
#[derive(Clone, Debug, Default)]
struct KindIndex {
    for_all: Vec<usize>,
    by_kind: HashMap<String, HashMap<String, Vec<usize>>>,
}

// === impl PolicyIndex ===

impl PolicyIndex {
    /// Adds a policy that is for these apiVersions and kinds, none for all, in a namespace or, where that is empty, everywhere. Its
    /// place has to be greater than those before.
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

    /// The places of policies that may be for objects of a kind in a namespace, in their order.
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
