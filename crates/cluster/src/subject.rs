//! What a request is about.

use std::fmt;

use windlass_object::{InCluster, ObjectKey};

use crate::kind::Kind;

/// What a request is about, in the words of its errors, and where that is.
pub(crate) trait Subject: fmt::Display + Sync {
    /// Whose API server is asked.
    fn cluster(&self) -> InCluster;
}

impl Subject for ObjectKey {
    fn cluster(&self) -> InCluster {
        self.cluster
    }
}

impl Subject for Kind {
    fn cluster(&self) -> InCluster {
        self.cluster
    }
}

/// Something that only the own API server is asked about.
impl Subject for &str {
    fn cluster(&self) -> InCluster {
        InCluster::Own
    }
}
