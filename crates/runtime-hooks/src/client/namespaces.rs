//! Whether a handler is for the objects of a namespace.

use futures::future::BoxFuture;
use serde_json::Value;
use thiserror::Error;

/// Labels of namespaces, for namespaceSelectors.
pub trait NamespaceLabels: Send + Sync + 'static {
    /// The labels of a namespace, a map of strings.
    fn labels(&self, namespace: String) -> BoxFuture<'_, Result<Value, NamespaceError>>;
}

/// Why it is not known whether a handler is for the objects of a namespace.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NamespaceError {
    /// There is none.
    #[error("namespace {0:?} not found")]
    NotFound(
        /// Its name.
        String,
    ),
    /// It cannot be read.
    #[error("cannot read namespace {namespace:?}: {problem}")]
    Read {
        /// Its name.
        namespace: String,
        /// Why.
        problem: String,
    },
}

/// No namespaces: whoever selects some is an error.
#[derive(Clone, Copy, Debug)]
pub struct NoNamespaces;

// === impl NoNamespaces ===

impl NamespaceLabels for NoNamespaces {
    fn labels(&self, namespace: String) -> BoxFuture<'_, Result<Value, NamespaceError>> {
        Box::pin(async move { Err(NamespaceError::NotFound(namespace)) })
    }
}
