//! Labels of namespaces.

use futures::future::BoxFuture;
use serde_json::Value;
use thiserror::Error;

/// A source of namespace labels, for namespaceSelectors.
pub trait NamespaceLabels: Send + Sync + 'static {
    /// Returns the labels of a namespace as a map of strings.
    fn labels(&self, namespace: String) -> BoxFuture<'_, Result<Value, NamespaceError>>;
}

/// Why the labels of a namespace are unknown.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the message explains each field")]
pub enum NamespaceError {
    /// The namespace does not exist.
    #[error("namespace {0:?} not found")]
    NotFound(
        /// The name of the namespace.
        String,
    ),
    /// The namespace cannot be read.
    #[error("cannot read namespace {namespace:?}: {problem}")]
    Read {
        /// The name of the namespace.
        namespace: String,
        problem: String,
    },
}

/// No source: a handler with a namespaceSelector causes an error.
#[derive(Clone, Copy, Debug)]
pub struct NoNamespaces;

impl NamespaceLabels for NoNamespaces {
    fn labels(&self, namespace: String) -> BoxFuture<'_, Result<Value, NamespaceError>> {
        Box::pin(async move { Err(NamespaceError::NotFound(namespace)) })
    }
}
