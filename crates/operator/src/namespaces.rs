//! Lookup of Namespaces.

use std::sync::Arc;

use serde_json::Value;
use windlass_cluster::{Cluster, Index, RequestError, kinds};

/// Finds a Namespace in the index, or reads it from the API server if the watch has not delivered it yet.
///
/// # Errors
///
/// If it cannot be read.
pub(crate) async fn namespace(
    index: &Index,
    cluster: &Cluster,
    name: &str,
) -> Result<Option<Arc<Value>>, RequestError> {
    let key = kinds::NAMESPACE.object(None, name);
    if let Some(seen) = index.find(&key) {
        return Ok(Some(seen));
    }
    let read = cluster.read(&key).await?;
    Ok(read.map(Arc::new))
}
