//! The kubelet: a task for each pod, which hears what changes.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use futures::StreamExt;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, ResourceExt,
    runtime::{WatchStreamExt, watcher},
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{context::NodeContext, error::NodeError, node, options::NodeOptions, pod};

/// The pods that this node runs or may run, by uid: where each task learns of its pod's changes.
type Pods = HashMap<String, watch::Sender<Option<Arc<Pod>>>>;

/// Runs the node until `shutdown`, then ends every process that it has started.
///
/// # Errors
///
/// When its folder or its addresses cannot be used. What fails later is retried.
pub fn run(
    client: Client,
    options: NodeOptions,
    shutdown: CancellationToken,
) -> BoxFuture<'static, Result<(), NodeError>> {
    // Boxed: the body is compiled here once, not again in every program that runs it.
    Box::pin(async move {
        let stop = shutdown.child_token();
        let _stop_with_us = stop.clone().drop_guard();
        let context = Arc::new(NodeContext::new(client.clone(), options, stop.clone())?);
        context.tasks.spawn(
            stop.clone()
                .run_until_cancelled_owned(node::keep_registered(context.clone())),
        );
        let watched = stop.run_until_cancelled(async {
            context.objects.ready().await;
            watch_pods(client, &context).await;
        });
        watched.await;
        stop.cancel();
        context.tasks.close();
        context.tasks.wait().await;
        Ok(())
    })
}

/// Gives each pod that is ours, or nobody's, a task, and tells the task what changes.
async fn watch_pods(client: Client, context: &Arc<NodeContext>) {
    let mut pods = Pods::new();
    let mut listed = HashSet::new();
    let mut events =
        std::pin::pin!(watcher(Api::<Pod>::all(client), watcher::Config::default()).default_backoff());
    while let Some(event) = events.next().await {
        match event {
            Ok(watcher::Event::Init) => listed.clear(),
            Ok(watcher::Event::InitApply(pod)) => {
                listed.extend(pod.uid());
                apply(pod, &mut pods, context);
            }
            Ok(watcher::Event::InitDone) => {
                for (_, gone) in pods.extract_if(|uid, _| !listed.contains(uid)) {
                    gone.send_replace(None);
                }
            }
            Ok(watcher::Event::Apply(pod)) => apply(pod, &mut pods, context),
            Ok(watcher::Event::Delete(pod)) => {
                if let Some(gone) = pod.uid().and_then(|uid| pods.remove(&uid)) {
                    gone.send_replace(None);
                }
            }
            Err(error) => tracing::debug!(%error, "The watch of pods was interrupted"),
        }
    }
}

fn apply(pod: Pod, pods: &mut Pods, context: &Arc<NodeContext>) {
    let Some(uid) = pod.uid() else {
        return;
    };
    let node = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.node_name.as_deref())
        .unwrap_or_default();
    let may_be_ours = node.is_empty() || node == context.options.name;
    let pod = Some(Arc::new(pod));
    match pods.get(&uid) {
        Some(known) => drop(known.send_replace(pod)),
        None if may_be_ours => {
            let (sender, changes) = watch::channel(pod);
            context.tasks.spawn(pod::run(context.clone(), changes));
            pods.insert(uid, sender);
        }
        None => {}
    }
}
