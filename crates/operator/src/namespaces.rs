//! Namespaces, as the watch has them; those that it has not seen yet are read.

use std::sync::Arc;

use serde_json::Value;
use windlass_cluster::{Cluster, Index, RequestError, kinds};

/// The Namespace of that name, if it is there. One that was created a moment ago may not have been seen yet.
///
/// # Errors
///
/// When it has not been seen, and cannot be read.
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
