//! Writes the status of a pod to the API.

use k8s_openapi::api::core::v1::{Pod, PodStatus};
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;
use tokio::sync::watch;

use crate::request::until_done;

/// Writes each status, the newest where several have come up, until there can be no more.
///
/// It is applied: conditions that others have set stay, and a pod of the same name that is another one is left alone.
pub(super) async fn publish(client: &Client, pod: &Pod, mut statuses: watch::Receiver<Option<PodStatus>>) {
    let api: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
    let name = pod.name_any();
    let manager = PatchParams::apply("windlass-node").force();
    while statuses.changed().await.is_ok() {
        until_done("publish the status", || {
            let status = statuses.borrow_and_update().clone();
            let applied = json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": name, "namespace": pod.namespace(), "uid": pod.uid()},
                "status": status,
            });
            let (api, name, manager) = (&api, &name, &manager);
            async move { api.patch_status(name, manager, &Patch::Apply(applied)).await }
        })
        .await;
    }
}
