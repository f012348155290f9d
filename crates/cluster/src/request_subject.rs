//! Subjects of requests.

use std::fmt;

use windlass_object::{InCluster, ObjectKey};

use crate::kind::Kind;

/// The subject of a request, as printed in errors, and its cluster.
pub(crate) trait RequestSubject: fmt::Display + Sync {
    /// Returns the cluster to which the request goes.
    fn cluster(&self) -> InCluster;
}

impl RequestSubject for ObjectKey {
    fn cluster(&self) -> InCluster {
        self.cluster
    }
}

impl RequestSubject for Kind {
    fn cluster(&self) -> InCluster {
        self.cluster
    }
}

/// A subject of the local API server only.
impl RequestSubject for &str {
    fn cluster(&self) -> InCluster {
        InCluster::Local
    }
}
