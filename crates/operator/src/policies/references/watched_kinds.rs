//! Watches of the kinds that policies refer to. A watch runs as long as a policy names its kind.
//!
//! Every replica has these watches. Their memory is bounded: objects of a kind that exceeds it are read one
//! by one.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::StreamExt;
use kube::{
    Api,
    api::{ApiResource, DynamicObject, GroupVersionKind},
    runtime::watcher,
};
use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use tokio::{
    sync::watch,
    task::{JoinError, JoinSet},
};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{info, warn};
use windlass_cluster::{Cluster, Index, Kind, telemetry::chain};
use windlass_object::label_selector;

use super::{super::kinds::watches, named_kinds::named_kinds};
use crate::policies::store::PolicyStore;

/// The kinds that policies refer to.
pub(super) struct WatchedKinds {
    cluster: Cluster,
    watched: Mutex<HashMap<Kind, (Arc<WatchedKind>, DropGuard)>>,
    /// The memory of all held objects, in bytes.
    held: Arc<AtomicUsize>,
    changes: watch::Sender<u64>,
}

/// The known objects of one kind.
pub(super) struct WatchedKind {
    seen: RwLock<KindContents>,
    held: Arc<AtomicUsize>,
}

#[derive(Default)]
struct KindContents {
    state: KindState,
    /// By namespace and name.
    objects: BTreeMap<(String, String), HeldObject>,
    /// Objects of a list that is not complete yet.
    listed: BTreeMap<(String, String), HeldObject>,
}

/// An object, as text: parsed JSON needs more memory.
struct HeldObject {
    text: Box<str>,
    labels: Value,
}

/// The progress of the watch of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum KindState {
    /// Nothing was received yet.
    #[default]
    Waiting,
    /// All objects are known.
    Synced,
    /// The watch just ended and restarts; the objects may be out of date.
    Doubtful,
    /// The kind cannot be watched, for this reason.
    Failing(String),
    /// The kind is not watched, or has too many objects to hold.
    Unwatched,
}

/// Why a watch ended.
enum WatchEnd {
    /// The objects exceed the memory limit.
    TooLarge,
    /// The list or the watch failed.
    Failed(String),
}

/// The memory limit of all held objects, in bytes.
const MEMORY_LIMIT: usize = 64 << 20;

/// The most kinds that are watched.
const KIND_LIMIT: usize = 64;

/// The pause before a failed watch restarts. It doubles while the list keeps failing.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The pause before a kind that was too large is listed again.
const TOO_LARGE_PAUSE: Duration = Duration::from_secs(600);

/// The timeout of a watch request in seconds, after which it is renewed.
const WATCH_TIMEOUT: u32 = 40;

/// The estimated memory of an object in addition to its text.
const OVERHEAD: usize = 256;

impl WatchedKinds {
    pub(super) fn new(cluster: Cluster) -> Self {
        Self {
            cluster,
            watched: Mutex::default(),
            held: Arc::default(),
            changes: watch::Sender::default(),
        }
    }

    /// Returns the objects of a kind if all of them are known.
    pub(super) fn synced(&self, kind: &Kind) -> Option<Arc<WatchedKind>> {
        let watched = self.watched.lock().get(kind).map(|(watched, _)| watched.clone());
        watched.filter(|watched| watched.state() == KindState::Synced)
    }

    pub(super) fn state_of(&self, kind: &Kind) -> KindState {
        let watched = self.watched.lock();
        watched
            .get(kind)
            .map_or(KindState::Unwatched, |(watched, _)| watched.state())
    }

    /// Notifies when the state of any kind changes.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Watches the kinds that policies name, until `shutdown`.
    ///
    /// # Errors
    ///
    /// When a watch panicked.
    pub(super) async fn run(
        &self,
        store: &PolicyStore,
        index: &Index,
        shutdown: CancellationToken,
    ) -> Result<(), JoinError> {
        let mut policies = store.changes();
        let mut tasks = JoinSet::new();
        loop {
            policies.borrow_and_update();
            let named = watches().flat_map(|watch| index.objects(&watch.kind));
            let named = named.flat_map(|policy| named_kinds(&policy)).collect();
            for (kind, watched, stop) in self.update_watches(named) {
                let (cluster, changes) = (self.cluster.clone(), self.changes.clone());
                tasks.spawn(async move {
                    tokio::select! {
                        () = stop.cancelled() => {}
                        () = watched.follow(&cluster, &kind, &changes) => {}
                    }
                    watched.clear();
                });
            }
            tokio::select! {
                () = shutdown.cancelled() => {
                    tasks.shutdown().await;
                    return Ok(());
                }
                _ = policies.changed() => {}
                Some(ended) = tasks.join_next() => ended?,
            }
        }
    }

    /// Stops the watches of all other kinds, and returns those to start.
    fn update_watches(&self, named: BTreeSet<Kind>) -> Vec<(Kind, Arc<WatchedKind>, CancellationToken)> {
        let mut watched = self.watched.lock();
        watched.retain(|kind, _| named.contains(kind));
        let mut begun = Vec::new();
        for kind in named {
            if watched.contains_key(&kind) {
                continue;
            }
            if watched.len() == KIND_LIMIT {
                warn!(%kind, "Policies name too many kinds; objects of this kind are read one by one");
                continue;
            }
            info!(%kind, "Watching a kind that policies refer to");
            let stop = CancellationToken::new();
            let seen = Arc::new(WatchedKind::new(self.held.clone()));
            watched.insert(kind.clone(), (seen.clone(), stop.clone().drop_guard()));
            begun.push((kind, seen, stop));
        }
        drop(watched);
        self.changes.send_modify(|count| *count += 1);
        begun
    }
}

impl WatchedKind {
    fn new(held: Arc<AtomicUsize>) -> Self {
        Self {
            seen: RwLock::default(),
            held,
        }
    }

    fn state(&self) -> KindState {
        self.seen.read().state.clone()
    }

    /// Returns the object with that name, in this namespace or cluster-scoped.
    pub(super) fn find(&self, namespace: &str, name: &str) -> Option<Value> {
        let seen = self.seen.read();
        let of = |namespace: &str| seen.objects.get(&(namespace.to_owned(), name.to_owned()));
        of(namespace).or_else(|| of(""))?.read()
    }

    /// Returns the objects that match the selector, in one namespace or in all.
    pub(super) fn with_labels(&self, namespace: &str, selector: &Value) -> Vec<Value> {
        let seen = self.seen.read();
        let objects = seen.objects.iter().filter(|((own, _), object)| {
            (namespace.is_empty() || own.is_empty() || own == namespace)
                && label_selector::matches(selector, &object.labels)
        });
        objects.filter_map(|(_, object)| object.read()).collect()
    }

    /// Watches the kind, and restarts a watch that ended. Never returns.
    async fn follow(&self, cluster: &Cluster, kind: &Kind, changes: &watch::Sender<u64>) {
        let mut again = FIRST_PAUSE;
        loop {
            let end = self.follow_once(cluster, kind, changes).await;
            let pause = match (end, self.state()) {
                (WatchEnd::TooLarge, _) => {
                    warn!(%kind, "Too many objects to cache; reading them one by one");
                    self.clear();
                    changes.send_modify(|count| *count += 1);
                    TOO_LARGE_PAUSE
                }
                // A short outage is not reported as a failure.
                (WatchEnd::Failed(_), KindState::Synced) => {
                    self.set_state(KindState::Doubtful, changes);
                    again = FIRST_PAUSE;
                    FIRST_PAUSE
                }
                (WatchEnd::Failed(problem), _) => {
                    self.set_state(KindState::Failing(problem), changes);
                    again = (again * 2).min(LONGEST_PAUSE);
                    again
                }
            };
            tokio::time::sleep(pause).await;
        }
    }

    async fn follow_once(&self, cluster: &Cluster, kind: &Kind, changes: &watch::Sender<u64>) -> WatchEnd {
        let served = match cluster.serves(kind).await {
            Ok(true) => cluster.resource(kind).await,
            Ok(false) => Ok(None),
            Err(error) => Err(error),
        };
        let plural = match served {
            Ok(Some(plural)) => plural,
            Ok(None) => return WatchEnd::Failed(format!("the cluster does not serve {kind}")),
            Err(error) => return WatchEnd::Failed(chain(&error)),
        };
        let (group, version) = kind.group_version();
        let named = GroupVersionKind::gvk(group, version, &kind.kind);
        let resource = ApiResource::from_gvk_with_plural(&named, &plural);
        let api: Api<DynamicObject> = Api::all_with(cluster.client().clone(), &resource);
        let config = watcher::Config::default().timeout(WATCH_TIMEOUT);
        let mut events = watcher(api, config).boxed();
        let mut is_listed = false;
        while let Some(event) = events.next().await {
            let noted = match event {
                Ok(watcher::Event::Init) => {
                    self.drop_listed();
                    Ok(())
                }
                Ok(watcher::Event::InitApply(object)) => self.insert(object, kind, true),
                Ok(watcher::Event::InitDone) => {
                    self.finish_list();
                    is_listed = true;
                    Ok(())
                }
                Ok(watcher::Event::Apply(object)) => self.insert(object, kind, false),
                Ok(watcher::Event::Delete(object)) => {
                    self.remove(&object);
                    Ok(())
                }
                // Discovery is repeated, since another version may be served now, or none.
                Err(error) => return WatchEnd::Failed(chain(&error)),
            };
            if let Err(end) = noted {
                return end;
            }
            if is_listed {
                self.set_state(KindState::Synced, changes);
            }
        }
        WatchEnd::Failed("the watch ended".to_owned())
    }

    fn set_state(&self, state: KindState, changes: &watch::Sender<u64>) {
        if self.seen.read().state == state {
            return;
        }
        self.seen.write().state = state;
        changes.send_modify(|count| *count += 1);
    }

    fn insert(&self, object: DynamicObject, kind: &Kind, from_list: bool) -> Result<(), WatchEnd> {
        let key = key_of(&object);
        let Some(object) = HeldObject::new(object, kind) else {
            return Ok(());
        };
        let held = self.held.fetch_add(object.size(), Ordering::Relaxed) + object.size();
        let mut seen = self.seen.write();
        let objects = if from_list {
            &mut seen.listed
        } else {
            &mut seen.objects
        };
        if let Some(before) = objects.insert(key, object) {
            self.held.fetch_sub(before.size(), Ordering::Relaxed);
        }
        if held > MEMORY_LIMIT {
            Err(WatchEnd::TooLarge)
        } else {
            Ok(())
        }
    }

    fn remove(&self, object: &DynamicObject) {
        if let Some(before) = self.seen.write().objects.remove(&key_of(object)) {
            self.held.fetch_sub(before.size(), Ordering::Relaxed);
        }
    }

    fn drop_listed(&self) {
        let listed = std::mem::take(&mut self.seen.write().listed);
        self.release(&listed);
    }

    fn finish_list(&self) {
        let mut seen = self.seen.write();
        let listed = std::mem::take(&mut seen.listed);
        let before = std::mem::replace(&mut seen.objects, listed);
        drop(seen);
        self.release(&before);
    }

    /// Drops all objects.
    fn clear(&self) {
        let mut seen = self.seen.write();
        seen.state = KindState::Unwatched;
        let (objects, listed) = (
            std::mem::take(&mut seen.objects),
            std::mem::take(&mut seen.listed),
        );
        drop(seen);
        self.release(&objects);
        self.release(&listed);
    }

    fn release(&self, objects: &BTreeMap<(String, String), HeldObject>) {
        let size = objects.values().map(HeldObject::size).sum();
        self.held.fetch_sub(size, Ordering::Relaxed);
    }
}

fn key_of(object: &DynamicObject) -> (String, String) {
    let metadata = &object.metadata;
    (
        metadata.namespace.clone().unwrap_or_default(),
        metadata.name.clone().unwrap_or_default(),
    )
}

impl HeldObject {
    fn new(mut object: DynamicObject, kind: &Kind) -> Option<Self> {
        object.metadata.managed_fields = None;
        let mut object = serde_json::to_value(object).ok()?;
        object["apiVersion"] = kind.api_version.clone().into();
        object["kind"] = kind.kind.clone().into();
        Some(Self {
            labels: object.pointer("/metadata/labels").cloned().unwrap_or_default(),
            text: object.to_string().into(),
        })
    }

    fn size(&self) -> usize {
        self.text.len() + OVERHEAD
    }

    fn read(&self) -> Option<Value> {
        serde_json::from_str(&self.text).ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(namespace: &str, name: &str, app: &str) -> DynamicObject {
        let metadata =
            json!({"namespace": namespace, "name": name, "labels": {"app": app}, "managedFields": [{}]});
        serde_json::from_value(json!({"metadata": metadata, "data": {"a": "b"}})).unwrap()
    }

    fn kind() -> Kind {
        Kind::new("v1", "ConfigMap")
    }

    #[test]
    fn a_complete_list_replaces_the_known_objects() {
        let held = Arc::new(AtomicUsize::new(0));
        let watched = WatchedKind::new(held.clone());
        let seen = |object, from_list| assert!(watched.insert(object, &kind(), from_list).is_ok());
        seen(object("n", "a", "x"), true);
        assert!(watched.find("n", "a").is_none(), "the list is not complete");
        watched.finish_list();
        let found = watched.find("n", "a").unwrap();
        assert_eq!(found["kind"], "ConfigMap");
        assert!(found.pointer("/metadata/managedFields").is_none());
        assert!(watched.find("m", "a").is_none());
        seen(object("m", "b", "x"), false);
        let selector = json!({"matchLabels": {"app": "x"}});
        assert_eq!(watched.with_labels("", &selector).len(), 2);
        assert_eq!(watched.with_labels("m", &selector).len(), 1);
        watched.drop_listed();
        seen(object("m", "b", "y"), true);
        watched.finish_list();
        assert!(watched.find("n", "a").is_none());
        watched.remove(&object("m", "b", "y"));
        assert_eq!(held.load(Ordering::Relaxed), 0, "no objects are held");
    }

    #[test]
    fn a_kind_that_is_too_large_is_dropped() {
        let held = Arc::new(AtomicUsize::new(MEMORY_LIMIT));
        let watched = WatchedKind::new(held.clone());
        let inserted = watched.insert(object("n", "a", "x"), &kind(), true);
        assert!(matches!(inserted, Err(WatchEnd::TooLarge)));
        watched.clear();
        assert_eq!(
            (held.load(Ordering::Relaxed), watched.state()),
            (MEMORY_LIMIT, KindState::Unwatched)
        );
    }

    #[tokio::test]
    async fn a_kind_is_watched_while_a_policy_names_it() {
        let unreachable = tower::service_fn(|_: http::Request<kube::client::Body>| async {
            Err::<http::Response<kube::client::Body>, tower::BoxError>("no API server".into())
        });
        let client = kube::Client::new(unreachable, "default");
        let kinds = WatchedKinds::new(Cluster::new(client, Duration::from_secs(1)));
        let begun = kinds.update_watches(BTreeSet::from([kind()]));
        assert_eq!(begun.len(), 1);
        assert!(kinds.update_watches(BTreeSet::from([kind()])).is_empty());
        assert_eq!(kinds.state_of(&kind()), KindState::Waiting);
        assert!(kinds.synced(&kind()).is_none());
        begun[0].1.set_state(KindState::Synced, &kinds.changes);
        assert!(kinds.synced(&kind()).is_some());
        begun[0]
            .1
            .set_state(KindState::Failing("p".to_owned()), &kinds.changes);
        assert!(kinds.synced(&kind()).is_none(), "the objects may be out of date");
        kinds.update_watches(BTreeSet::new());
        assert!(begun[0].2.is_cancelled());
        assert_eq!(kinds.state_of(&kind()), KindState::Unwatched);
    }
}
