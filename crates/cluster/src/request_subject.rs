//! What a request is about.

use std::fmt;

use windlass_object::{InCluster, ObjectKey};

use crate::kind::Kind;

/// What a request is about, in the words of its errors, and where that is.
pub(crate) trait RequestSubject: fmt::Display + Sync {
    /// Whose API server is asked.
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

/// Something that only the own API server is asked about.
impl RequestSubject for &str {
    fn cluster(&self) -> InCluster {
        InCluster::Local
    }
}
