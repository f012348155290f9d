//! Watches: one task for each, started when it is first desired, all feeding the one index.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use futures::StreamExt;
use kube::{
    Api,
    api::DynamicObject,
    runtime::{WatchStreamExt, watcher},
};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::{
    sync::{broadcast, mpsc},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, debug, info, info_span, warn};
use windlass_object::{ObjectKey, object};

use super::watch::Watch;
use crate::{
    index::Index,
    kind::{Kind, kinds},
    requests::{Cluster, RequestError},
    slim::slim,
};

/// Starts and stops watches.
#[derive(Clone)]
pub struct Watches {
    shared: Arc<Shared>,
}

struct Shared {
    cluster: Cluster,
    index: Arc<Index>,
    running: Mutex<HashMap<Watch, CancellationToken>>,
    started: mpsc::UnboundedSender<(Watch, CancellationToken)>,
}

/// Runs the watches that are desired; ends only when one of them panics, or at shutdown.
pub struct Supervisor {
    watches: Watches,
    starts: mpsc::UnboundedReceiver<(Watch, CancellationToken)>,
}

/// How soon discovery is asked again about a kind that is not served; twice as late each time, until something that
/// defines the kind changes.
const FIRST_RECHECK: Duration = Duration::from_secs(1);

/// How long the absence of a kind is believed at the most: that it is served comes with a CRD, which its own watch
/// sees.
const LAST_RECHECK: Duration = Duration::from_secs(600);

/// How long it is waited at the most where discovery does not answer.
const OUTAGE: Duration = Duration::from_secs(30);

/// What says which kinds are served. A real API server keeps an APIService for the version of every group that it serves.
const DEFINITIONS: [Kind; 2] = [kinds::CUSTOM_RESOURCE_DEFINITION, kinds::API_SERVICE];

// === impl Watches ===

impl Watches {
    /// Watches through `cluster` into `index`. Nothing runs before the supervisor does.
    pub fn new(cluster: Cluster, index: Arc<Index>) -> (Self, Supervisor) {
        let (started, starts) = mpsc::unbounded_channel();
        let shared = Shared {
            cluster,
            index,
            running: Mutex::default(),
            started,
        };
        let watches = Self {
            shared: Arc::new(shared),
        };
        (watches.clone(), Supervisor { watches, starts })
    }

    /// Sees to it that `watch` runs.
    pub fn want(&self, watch: Watch) {
        let mut running = self.shared.running.lock();
        if running.contains_key(&watch) {
            return;
        }
        let stop = CancellationToken::new();
        running.insert(watch.clone(), stop.clone());
        // The receiver is gone only at shutdown.
        let _ = self.shared.started.send((watch, stop));
    }

    /// Makes `desired` the only watches that run among those for which `concerns` holds.
    pub fn want_only(&self, desired: HashSet<Watch>, concerns: impl Fn(&Watch) -> bool) {
        {
            let mut running = self.shared.running.lock();
            running.retain(|watch, stop| {
                let keep = !concerns(watch) || desired.contains(watch);
                if !keep {
                    stop.cancel();
                }
                keep
            });
        }
        for watch in desired {
            self.want(watch);
        }
    }

    /// Whether every watch that is desired, of a kind that the cluster serves, has seen all there is.
    pub fn are_complete(&self) -> bool {
        let running = self.shared.running.lock();
        running.keys().all(|watch| self.shared.index.is_complete(watch))
    }

    /// Waits until [`Watches::are_complete`].
    pub async fn completed(&self) {
        let mut progress = self.shared.index.progress();
        while !self.are_complete() {
            // The index lives as long as this, so it cannot have been dropped.
            let _ = progress.changed().await;
        }
    }
}

// === impl Supervisor ===

impl Supervisor {
    /// Runs until `shutdown`.
    ///
    /// # Errors
    ///
    /// When a watch panicked.
    pub async fn run(mut self, shutdown: CancellationToken) -> Result<(), tokio::task::JoinError> {
        let mut tasks = JoinSet::new();
        loop {
            tokio::select! {
                () = shutdown.cancelled() => {
                    tasks.shutdown().await;
                    return Ok(());
                }
                Some((watch, stop)) = self.starts.recv() => {
                    let shared = self.watches.shared.clone();
                    let span = info_span!("watch", kind = %watch.kind, namespace = watch.namespace);
                    tasks.spawn(async move {
                        tokio::select! {
                            () = stop.cancelled() => {}
                            () = follow(&shared, &watch) => {}
                        }
                        shared.index.close(&watch);
                    }.instrument(span));
                }
                Some(ended) = tasks.join_next() => ended?,
            }
        }
    }
}

/// Follows one kind for ever. Its CustomResourceDefinition may come and go.
async fn follow(shared: &Shared, watch: &Watch) {
    let mut said = false;
    let mut pause = FIRST_RECHECK;
    loop {
        // Before the question, so that no CRD is missed that comes after it.
        let mut changes = shared.index.subscribe();
        let longest = match shared.cluster.served(&watch.kind).await {
            Ok(served) => {
                // Whoever does not read keeps every change in memory.
                drop(changes);
                let api: Api<DynamicObject> = match &watch.namespace {
                    Some(namespace) => {
                        Api::namespaced_with(shared.cluster.client().clone(), namespace, &served.resource)
                    }
                    None => Api::all_with(shared.cluster.client().clone(), &served.resource),
                };
                (said, pause) = (false, FIRST_RECHECK);
                follow_served(shared, watch, api).await;
                shared.cluster.forget(&watch.kind);
                continue;
            }
            Err(RequestError::UnknownKind { .. }) => {
                if !std::mem::replace(&mut said, true) {
                    if *watch.kind.api_version == *windlass_object::names::API_VERSION {
                        info!(kind = %watch.kind, "Waiting for the CustomResourceDefinitions of Windlass: apply `windlass manifests`");
                    } else {
                        debug!(kind = %watch.kind, "The cluster does not serve this kind; waiting for it");
                    }
                }
                // Nothing is all there is.
                shared.index.begin_relist(watch);
                shared.index.finish_relist(watch);
                if DEFINITIONS.contains(&watch.kind) {
                    FIRST_RECHECK
                } else {
                    LAST_RECHECK
                }
            }
            Err(error) => {
                warn!(%error, "Cannot determine whether the kind is served");
                OUTAGE
            }
        };
        pause = pause.min(longest);
        tokio::select! {
            // What is defined is served a moment later.
            () = crd_changed(&mut changes, &watch.kind) => pause = FIRST_RECHECK,
            () = tokio::time::sleep(pause) => pause *= 2,
        }
    }
}

/// Follows a kind until the API server does not serve it any more.
async fn follow_served(shared: &Shared, watch: &Watch, api: Api<DynamicObject>) {
    let mut events = std::pin::pin!(watcher(api, watch.config()).default_backoff());
    while let Some(event) = events.next().await {
        match event {
            Ok(watcher::Event::Init) => shared.index.begin_relist(watch),
            Ok(watcher::Event::InitApply(object)) => {
                if let Some(object) = slim(object, &watch.kind) {
                    shared.index.relist(watch, object);
                }
            }
            Ok(watcher::Event::InitDone) => shared.index.finish_relist(watch),
            Ok(watcher::Event::Apply(object)) => {
                if let Some(object) = slim(object, &watch.kind) {
                    shared.index.apply(watch, object);
                }
            }
            Ok(watcher::Event::Delete(object)) => {
                if let Some(key) = slim(object, &watch.kind).as_ref().and_then(ObjectKey::of) {
                    shared.index.delete(watch, &key);
                }
            }
            Err(error) if is_gone(&error) => {
                debug!("The kind is no longer served");
                return;
            }
            Err(error) => warn!(%error, "Watch failed; restarting it"),
        }
    }
}

/// Waits until a CRD of `kind` comes, changes or goes.
async fn crd_changed(changes: &mut broadcast::Receiver<super::Change>, kind: &Kind) {
    loop {
        match changes.recv().await {
            Ok(change) => {
                let crd = change.after.or(change.before);
                if crd.is_some_and(|crd| defines(&crd, kind)) {
                    return;
                }
            }
            Err(broadcast::error::RecvError::Lagged(_)) => return,
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// Whether an object says that `kind` is served.
fn defines(crd: &Value, kind: &Kind) -> bool {
    let is_of = |of: &Kind| object::text(crd, "/kind") == Some(&*of.kind);
    let says = |pointer, what| object::text(crd, pointer) == Some(what);
    let (group, version) = kind.group_version();
    (is_of(&kinds::CUSTOM_RESOURCE_DEFINITION)
        && says("/spec/group", group)
        && says("/spec/names/kind", &kind.kind))
        || (is_of(&kinds::API_SERVICE) && says("/spec/group", group) && says("/spec/version", version))
}

/// A kind that is not served answers 404 to lists.
fn is_gone(error: &watcher::Error) -> bool {
    let (watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error)) = error else {
        return false;
    };
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_kind_is_defined_by_its_definition_or_by_whoever_serves_its_version() {
        let kind = Kind::new("runtime.cluster.x-k8s.io/v1beta2", "ExtensionConfig");
        let crd = |group: &str, name: &str| json!({"kind": "CustomResourceDefinition", "spec": {"group": group, "names": {"kind": name}}});
        let service = |version: &str| json!({"kind": "APIService", "spec": {"group": "runtime.cluster.x-k8s.io", "version": version}});
        for (object, expected) in [
            (crd("runtime.cluster.x-k8s.io", "ExtensionConfig"), true),
            (crd("runtime.cluster.x-k8s.io", "Other"), false),
            (crd("example.com", "ExtensionConfig"), false),
            (service("v1beta2"), true),
            (service("v1alpha1"), false),
            (json!({"kind": "ConfigMap"}), false),
        ] {
            assert_eq!(defines(&object, &kind), expected, "{object}");
        }
    }
}
