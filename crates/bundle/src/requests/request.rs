//! A request that a bundle needs to start.

use std::fmt;

use super::known_labels::KnownLabels;

/// A request that a bundle needs to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// `CREATE` or `UPDATE`.
    pub(super) operation: &'static str,
    /// The API group; empty for the core group.
    pub(super) group: String,
    /// The resource, with its subresource: `pods/status`.
    pub(super) resource: String,
    /// The scope of the object.
    pub(super) place: Place,
    /// The labels of the object in the request.
    pub(super) labels: KnownLabels,
}

/// The scope of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Cluster-scoped: a `namespaceSelector` does not apply.
    Cluster,
    /// The namespace of the operator.
    Own,
    /// Every namespace that the operator watches.
    Watched,
    /// A namespace of Kubernetes or of Windlass.
    System,
}

/// The namespaces that an operator watches, in which its webhooks are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WatchedNamespaces {
    /// Whether the operator watches all namespaces.
    pub(crate) all: bool,
    /// Whether the watched namespaces include that of the operator.
    pub(crate) own: bool,
}

impl WatchedNamespaces {
    /// Every namespace.
    pub(crate) const ALL: Self = Self { all: true, own: true };

    /// Reports whether webhooks are called for objects in `place`.
    pub(super) fn holds(self, place: Place) -> bool {
        match place {
            Place::Cluster | Place::Watched => true,
            Place::Own => self.own,
            Place::System => self.all,
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.operation, self.resource)?;
        if self.group.is_empty() {
            Ok(())
        } else {
            write!(f, " of {}", self.group)
        }
    }
}
