//! Relations between objects by which the index looks them up.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass_object::object;
use windlass_trust::injection::{CaRequests, CaSource, TargetKinds};

use crate::kind;

/// Label on EndpointSlices: their Service.
pub const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// A relation of an object, for kinds with many objects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Relation {
    /// EndpointSlice to the Service with this namespace and name.
    Endpoints(String, String),
    /// Target to the trust bundle that it requests.
    Target(CaSource),
}

impl Relation {
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
