//! The task of a pod: binds it, lives its life, removes it.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, PodSpec};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, PostParams, Preconditions},
};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{
    changes::{Changes, changed, deletion},
    life::Life,
    publisher,
};
use crate::{context::NodeContext, request::until_done};

/// Takes a pod through its life on this node: until it is gone, is another node's, or the node stops.
pub(crate) async fn run(context: Arc<NodeContext>, changes: Changes) {
    let stop = context.stop.clone();
    stop.run_until_cancelled(live(context, changes)).await;
}

async fn live(context: Arc<NodeContext>, mut changes: Changes) {
    let Some(pod) = bound(&context, &mut changes).await else {
        return;
    };
    if !has_ended(&pod) {
        let (statuses, published) = watch::channel(None);
        let Some(life) = Life::new(context.clone(), pod.clone(), changes.clone(), statuses) else {
            return;
        };
        // The life drops its end of the channel: the publisher ends when it has published the last status.
        tokio::join!(life.run(), publisher::publish(&context.client, &pod, published));
    }
    deletion(&mut changes).await;
    if changes.borrow().is_some() {
        remove(&context, &pod).await;
    }
}

/// Binds the pod to this node; `None` when it is gone or was bound to another.
async fn bound(context: &NodeContext, changes: &mut Changes) -> Option<Arc<Pod>> {
    loop {
        let pod = changes.borrow_and_update().clone()?;
        let spec = pod.spec.as_ref()?;
        match spec.node_name.as_deref().unwrap_or_default() {
            "" if may_be_bound(&pod, spec) => bind(context, &pod).await,
            "" => {}
            node if node == context.options.name => return Some(pod),
            _ => return None,
        }
        changed(changes).await;
    }
}

/// Scheduling gates hold a pod back (KEP-3521); the API server removes a deleted pod that no node has.
fn may_be_bound(pod: &Pod, spec: &PodSpec) -> bool {
    pod.metadata.deletion_timestamp.is_none() && spec.scheduling_gates.as_ref().is_none_or(Vec::is_empty)
}

async fn bind(context: &NodeContext, pod: &Pod) {
    let name = pod.name_any();
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding",
        "metadata": {"name": name, "namespace": pod.namespace(), "uid": pod.uid()},
        "target": {"apiVersion": "v1", "kind": "Node", "name": context.options.name},
    });
    let api = pods(context, pod);
    let parameters = PostParams::default();
    until_done("bind", || {
        api.create_subresource::<_, Value>("binding", &name, &parameters, &binding)
    })
    .await;
}

/// Removes the pod from the API, now that nothing of it runs.
async fn remove(context: &NodeContext, pod: &Pod) {
    let api = pods(context, pod);
    let preconditions = Preconditions {
        uid: pod.uid(),
        resource_version: None,
    };
    let parameters = DeleteParams {
        preconditions: Some(preconditions),
        ..DeleteParams::default()
    }
    .grace_period(0);
    let name = pod.name_any();
    until_done("remove", || api.delete(&name, &parameters)).await;
}

/// Whether the pod has run already, and is not run again.
fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

fn pods(context: &NodeContext, pod: &Pod) -> Api<Pod> {
    Api::namespaced(context.client.clone(), &pod.namespace().unwrap_or_default())
}
