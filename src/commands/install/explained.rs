//! What the API server says of the objects of an install.

use windlass_cluster::RequestError;

use super::super::cluster::explained;

/// Explains why an object of the operator's namespace cannot be written or read.
pub(in crate::commands) fn explained_in(namespace: &str, error: RequestError) -> anyhow::Error {
    if error.is_not_found() {
        return anyhow::anyhow!(
            "namespace {namespace} not found: install the operator first (windlass manifests | kubectl apply -f -), or \
             set --operator-namespace"
        );
    }
    explained(error)
}
