//! One request without which a bundle does not come up.

use std::fmt;

use super::known_labels::KnownLabels;

/// A request without which a bundle does not come up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// `CREATE` or `UPDATE`.
    pub(super) operation: &'static str,
    /// The API group; empty for the core group.
    pub(super) group: String,
    /// The resource, with its subresource: `pods/status`.
    pub(super) resource: String,
    /// Where the object is.
    pub(super) place: Place,
    /// The labels of what is sent.
    pub(super) labels: KnownLabels,
}

/// Where an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In no namespace: no `namespaceSelector` looks at it.
    Cluster,
    /// In the namespace of the operator.
    Own,
    /// In each namespace that the operator watches.
    Watched,
    /// In a namespace of Kubernetes or of Windlass.
    System,
}

/// The namespaces that an operator watches, and so those in which its webhooks are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WatchedNamespaces {
    /// All of them.
    pub(crate) all: bool,
    /// At least its own.
    pub(crate) own: bool,
}

// === impl WatchedNamespaces ===

impl WatchedNamespaces {
    /// Every namespace.
    pub(crate) const ALL: Self = Self { all: true, own: true };

    /// Whether webhooks are called for objects in `place`.
    pub(super) fn holds(self, place: Place) -> bool {
        match place {
            Place::Cluster | Place::Watched => true,
            Place::Own => self.own,
            Place::System => self.all,
        }
    }
}

// === impl Request ===

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
