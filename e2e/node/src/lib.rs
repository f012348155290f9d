//! A simulated kubelet: runs pods as local processes against any API server.
//!
//! It is the scheduler too: it registers one node, binds every pending pod to it, and talks to nothing but the API.
//!
//! ```text
//! pod -> bound -> Secrets and ConfigMaps there -> address -> volumes written -> init containers -> containers
//!     -> probes -> status ... -> deletion: not ready -> preStop -> SIGTERM -> SIGKILL -> removed
//! ```
//!
//! One task runs each pod ([`pod`]), one each container ([`container`]). Nothing is polled but probes.

mod address;
mod backoff;
mod container;
mod context;
mod environment;
mod fields;
mod node;
mod objects;
mod options;
mod pod;
mod probe;
mod process;
mod request;
mod stand_in;
mod volume;

use std::{collections::HashMap, io, path::PathBuf, sync::Arc};

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, ResourceExt,
    runtime::{WatchStreamExt, watcher},
};
use tokio::sync::watch;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::context::Context;

pub use address::{Network, ParseNetworkError};
pub use options::{Options, Program, log_path};

/// Why a node cannot run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its folder cannot be made.
    #[error("cannot make the folder {}: {source}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What failed.
        source: io::Error,
    },
    /// Its addresses are not local.
    #[error("cannot use the addresses {network} on this machine: {source}")]
    Addresses {
        /// The network that was asked for.
        network: Network,
        /// What failed.
        source: io::Error,
    },
    /// The thread that starts processes cannot be started.
    #[error("cannot start the thread that starts processes: {0}")]
    Spawner(io::Error),
}

/// The pods that this node runs, by uid: where each task learns of its pod's changes.
type Pods = HashMap<String, watch::Sender<Option<Arc<Pod>>>>;

/// Runs the node until `shutdown`, then ends every process that it has started.
///
/// # Errors
///
/// When its folder or its addresses cannot be used. What fails later is retried.
pub async fn run(client: Client, options: Options, shutdown: CancellationToken) -> Result<(), Error> {
    let tasks = TaskTracker::new();
    let stop = shutdown.child_token();
    let _stop_with_us = stop.clone().drop_guard();
    let context = Arc::new(Context::new(client.clone(), options, &tasks, stop.clone())?);
    tasks.spawn(stop.clone().run_until_cancelled_owned(node::keep_registered(context.clone())));
    let watched = stop.run_until_cancelled(async {
        context.objects.ready().await;
        watch_pods(client, &context, &tasks).await;
    });
    watched.await;
    stop.cancel();
    tasks.close();
    tasks.wait().await;
    Ok(())
}

/// Gives each pod that is ours, or nobody's, a task, and tells the task what changes.
async fn watch_pods(client: Client, context: &Arc<Context>, tasks: &TaskTracker) {
    let mut pods = Pods::new();
    let mut listed: Option<Vec<String>> = None;
    let mut events = std::pin::pin!(watcher(Api::<Pod>::all(client), watcher::Config::default()).default_backoff());
    while let Some(event) = events.next().await {
        match event {
            Ok(watcher::Event::Init) => listed = Some(Vec::new()),
            Ok(watcher::Event::InitApply(pod)) => {
                if let Some(listed) = &mut listed {
                    listed.extend(pod.uid());
                }
                apply(pod, &mut pods, context, tasks);
            }
            Ok(watcher::Event::InitDone) => {
                let listed = listed.take().unwrap_or_default();
                pods.retain(|uid, pod| listed.contains(uid) || pod.send(None).is_ok() && false);
            }
            Ok(watcher::Event::Apply(pod)) => apply(pod, &mut pods, context, tasks),
            Ok(watcher::Event::Delete(pod)) => {
                if let Some(gone) = pod.uid().and_then(|uid| pods.remove(&uid)) {
                    gone.send_replace(None);
                }
            }
            Err(error) => tracing::debug!(%error, "The watch of pods was interrupted"),
        }
    }
}

fn apply(pod: Pod, pods: &mut Pods, context: &Arc<Context>, tasks: &TaskTracker) {
    let Some(uid) = pod.uid() else {
        return;
    };
    let ours = pod.spec.as_ref().is_some_and(|spec| {
        let node = spec.node_name.as_deref().unwrap_or_default();
        node.is_empty() || node == context.options.name
    });
    if !ours {
        return;
    }
    let pod = Arc::new(pod);
    match pods.get(&uid) {
        Some(known) => drop(known.send_replace(Some(pod))),
        None => {
            let (sender, receiver) = watch::channel(Some(pod.clone()));
            tasks.spawn(pod::run(context.clone(), pod, receiver));
            pods.insert(uid, sender);
        }
    }
}
