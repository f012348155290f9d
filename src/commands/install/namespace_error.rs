//! Errors about the operator's namespace.

use windlass_cluster::RequestError;

use super::super::cluster::explain_error;

/// Returns why an object in the operator's namespace cannot be written or read, with advice.
pub(in crate::commands) fn explain_namespace_error(namespace: &str, error: RequestError) -> anyhow::Error {
    if error.is_not_found() {
        return anyhow::anyhow!(
            "namespace {namespace} not found: install the operator first (windlass manifests | kubectl apply --server-side -f -), or \
             specify its namespace with --operator-namespace"
        );
    }
    explain_error(error)
}
