//! What an object is of, where objects are looked for by that.

use serde_json::Value;
use windlass_object::object;
use windlass_trust::injection::{CaSource, TargetKind, asked_source};

use crate::kind::kinds;

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
    /// What `object` is of, if it is looked for by that.
    pub(crate) fn of(object: &Value) -> Option<Self> {
        if object::text(object, "/kind") == Some(&*kinds::ENDPOINT_SLICE.kind) {
            let service = object::label(object, SERVICE_NAME)?;
            let namespace = object::text(object, "/metadata/namespace")?;
            return Some(Self::Endpoints(namespace.to_owned(), service.to_owned()));
        }
        TargetKind::of(object)?;
        asked_source(object).map(Self::Target)
    }
}
