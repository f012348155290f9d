//! Watches: one task for each, started when it is first desired, all feeding the one index.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
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
    time::Instant,
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
    running: Mutex<HashMap<Watch, Running>>,
    started: mpsc::UnboundedSender<(Watch, CancellationToken)>,
}

/// A watch that is desired.
struct Running {
    stop: CancellationToken,
    /// Until when its first list is waited for by everybody; `None`: for ever.
    awaited: Option<Instant>,
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

/// How long everybody waits for the first list of a kind that only some need. Whoever needs it waits on.
const PATIENCE: Duration = Duration::from_secs(30);

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
        let state = Running {
            stop: stop.clone(),
            awaited: (!watch.is_essential()).then(|| Instant::now() + PATIENCE),
        };
        running.insert(watch.clone(), state);
        // The receiver is gone only at shutdown.
        let _ = self.shared.started.send((watch, stop));
    }

    /// Makes `desired` the only watches that run among those for which `concerns` holds.
    pub fn want_only(&self, desired: HashSet<Watch>, concerns: impl Fn(&Watch) -> bool) {
        {
            let mut running = self.shared.running.lock();
            running.retain(|watch, state| {
                let keep = !concerns(watch) || desired.contains(watch);
                if !keep {
                    state.stop.cancel();
                }
                keep
            });
        }
        for watch in desired {
            self.want(watch);
        }
    }

    /// Whether every watch that is desired, of a kind that the cluster serves, has seen all there is; of kinds that others
    /// serve (a stranger's conversion webhook may be down for days), or has had its time.
    pub fn are_complete(&self) -> bool {
        self.awaited().is_none()
    }

    /// Waits until [`Watches::are_complete`].
    pub async fn completed(&self) {
        let mut progress = self.shared.index.progress();
        while let Some(left) = self.awaited() {
            tokio::select! {
                // The index lives as long as this, so it cannot have been dropped.
                _ = progress.changed() => {}
                () = tokio::time::sleep(left) => {}
            }
        }
    }

    /// The kinds of which a watch that is desired has not seen all there is. What is not seen of them is not known to be
    /// absent.
    pub fn unlisted(&self) -> BTreeSet<Kind> {
        let running = self.shared.running.lock();
        let incomplete = running
            .keys()
            .filter(|watch| !self.shared.index.is_complete(watch));
        incomplete.map(|watch| watch.kind.clone()).collect()
    }

    /// How long everybody waits at the most before there is news: [`Duration::MAX`] is until there is. `None`: for nothing.
    fn awaited(&self) -> Option<Duration> {
        let now = Instant::now();
        let running = self.shared.running.lock();
        running
            .iter()
            .filter(|(watch, _)| !self.shared.index.is_complete(watch))
            .map(|(_, state)| match state.awaited {
                Some(until) => until.saturating_duration_since(now),
                None => Duration::MAX,
            })
            .filter(|left| !left.is_zero())
            .min()
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
                shared.index.mark_absent(watch);
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

    use kube::{Client, client::Body};
    use tower::{BoxError, service_fn};

    use super::*;

    fn watches() -> (Watches, Arc<Index>) {
        let nobody = service_fn(|_: http::Request<Body>| async {
            Err::<http::Response<Body>, BoxError>("nobody answers".into())
        });
        let cluster = Cluster::new(Client::new(nobody, "default"), Duration::from_secs(1));
        let index = Arc::new(Index::new());
        (Watches::new(cluster, index.clone()).0, index)
    }

    #[tokio::test]
    async fn a_kind_of_others_that_cannot_be_listed_is_waited_for_in_vain_only_for_a_while() {
        let (watches, index) = watches();
        let strange = Watch::all(Kind::new("runtime.cluster.x-k8s.io/v1beta2", "ExtensionConfig"));
        watches.want(strange.clone());
        watches.want(Watch::all(kinds::SERVICE));
        assert!(!watches.are_complete());
        index.finish_relist(&Watch::all(kinds::SERVICE));
        assert!(!watches.are_complete(), "the other has its time, too");
        assert!(watches.awaited().is_some_and(|left| left <= PATIENCE));
        // Its time is over.
        {
            let mut running = watches.shared.running.lock();
            running.get_mut(&strange).unwrap().awaited = Some(Instant::now());
        }
        assert!(watches.are_complete());
        let completed = tokio::time::timeout(Duration::from_secs(10), watches.completed());
        completed.await.unwrap();
        assert_eq!(watches.unlisted(), BTreeSet::from([strange.kind.clone()]));
        index.finish_relist(&strange);
        assert_eq!(watches.unlisted(), BTreeSet::new());
    }

    #[tokio::test]
    async fn what_nothing_can_be_done_without_is_waited_for_until_it_is_there() {
        let (watches, index) = watches();
        watches.want(Watch::all(kinds::SECRET));
        assert_eq!(watches.awaited(), Some(Duration::MAX));
        let waiting = tokio::spawn({
            let watches = watches.clone();
            async move { watches.completed().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        index.finish_relist(&Watch::all(kinds::SECRET));
        tokio::time::timeout(Duration::from_secs(10), waiting)
            .await
            .unwrap()
            .unwrap();
    }

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
