//! What an object is of, where objects are looked for by that.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_object::object;
use windlass_trust::injection::{CaRequests, CaSource, TargetKinds};

use crate::kind;

/// Label on EndpointSlices: their Service.
pub const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// What an object is of, where it is looked for by that: a cluster has many.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Relation {
    /// An EndpointSlice, of the Service with this namespace and name.
    Endpoints(String, String),
    /// A target, that asks for the trust bundle of this.
    Target(CaSource),
}

// === impl Relation ===

impl Relation {
    /// What `object` is of, as far as it is looked for by that.
    pub(crate) fn all_of(object: &Value, kinds: &TargetKinds) -> Vec<Self> {
        if object::text(object, "/kind") == Some(&*kind::kinds::ENDPOINT_SLICE.kind) {
            return Self::of_slice(object).into_iter().collect();
        }
        if kinds.kind_of(object).is_none() {
            return Vec::new();
        }
        let requests = CaRequests::from_valid_annotations(object, kinds);
        let sources: BTreeSet<_> = requests.sets().into_iter().flatten().collect();
        sources.into_iter().cloned().map(Self::Target).collect()
    }

    fn of_slice(slice: &Value) -> Option<Self> {
        let service = object::label(slice, SERVICE_NAME)?;
        let namespace = object::text(slice, "/metadata/namespace")?;
        Some(Self::Endpoints(namespace.to_owned(), service.to_owned()))
    }
}
