//! What a pod's task hears of its pod.

use std::{future::pending, sync::Arc};

use k8s_openapi::api::core::v1::Pod;
use tokio::sync::watch;

/// The pod as it is now; `None` once it is gone.
pub(crate) type Changes = watch::Receiver<Option<Arc<Pod>>>;

/// Waits until the pod is to be deleted, or gone.
pub(super) async fn deletion(changes: &mut Changes) {
    let deleted = |pod: &Option<Arc<Pod>>| {
        pod.as_ref()
            .is_none_or(|pod| pod.metadata.deletion_timestamp.is_some())
    };
    if changes.wait_for(deleted).await.is_err() {
        pending::<()>().await;
    }
}

/// Waits for the next change; for ever once there can be none, because the node stops.
pub(super) async fn changed(changes: &mut Changes) {
    if changes.changed().await.is_err() {
        pending::<()>().await;
    }
}
