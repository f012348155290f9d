//! Watches of the kinds that policies name. They begin when a policy names a kind, and end when none does.
//!
//! Every replica has them. What they hold is bounded: a kind that is too large for that is not held, and its objects are read one by
//! one.

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

/// The kinds that policies name.
pub(super) struct WatchedKinds {
    cluster: Cluster,
    watched: Mutex<HashMap<Kind, (Arc<WatchedKind>, DropGuard)>>,
    /// How many bytes all of them hold.
    held: Arc<AtomicUsize>,
    changes: watch::Sender<u64>,
}

/// What is seen of a kind.
pub(super) struct WatchedKind {
    seen: RwLock<SeenKind>,
    held: Arc<AtomicUsize>,
}

#[derive(Default)]
struct SeenKind {
    state: KindState,
    /// By namespace and name.
    objects: BTreeMap<(String, String), HeldObject>,
    /// Those of a list that is not at its end.
    listed: BTreeMap<(String, String), HeldObject>,
}

/// An object, as text: that takes less memory than what it means.
struct HeldObject {
    text: Box<str>,
    labels: Value,
}

/// How much is known of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum KindState {
    /// Nothing has come yet.
    #[default]
    Waiting,
    /// All objects are known.
    Synced,
    /// What is known may be out of date: the watch has just ended, and begins again.
    Doubtful,
    /// It cannot be watched, and why.
    Failing(String),
    /// It is not watched, or has too many objects to be held.
    Unwatched,
}

/// Why what is seen of a kind ends.
enum WatchEnd {
    /// It has more than may be held.
    TooLarge,
    /// It cannot be listed or followed.
    Failed(String),
}

/// The most bytes of all objects that are held.
const HELD: usize = 64 << 20;

/// The most kinds that are watched.
const KINDS: usize = 64;

/// How soon a watch is begun again that ended; twice as late each time, while nothing can be listed.
const FIRST_AGAIN: Duration = Duration::from_secs(1);

/// How late at the most.
const LAST_AGAIN: Duration = Duration::from_secs(60);

/// How soon it is tried again to hold a kind that was too large.
const LARGE_AGAIN: Duration = Duration::from_secs(600);

/// After how many seconds the API server ends a watch, which then goes on.
const LONGEST: u32 = 40;

/// What an object takes beside its text.
const OVERHEAD: usize = 256;

// === impl WatchedKinds ===

impl WatchedKinds {
    pub(super) fn new(cluster: Cluster) -> Self {
        Self {
            cluster,
            watched: Mutex::default(),
            held: Arc::default(),
            changes: watch::Sender::default(),
        }
    }

    /// What is seen of a kind, if all of it is.
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

    /// Changes with the state of any of them.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Watches what policies name, until `shutdown`.
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
            for (kind, watched, stop) in self.want_only(named) {
                let (cluster, changes) = (self.cluster.clone(), self.changes.clone());
                tasks.spawn(async move {
                    tokio::select! {
                        () = stop.cancelled() => {}
                        () = watched.follow(&cluster, &kind, &changes) => {}
                    }
                    watched.forget();
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

    /// Makes these all that is watched. Those are returned that are to be begun.
    fn want_only(&self, named: BTreeSet<Kind>) -> Vec<(Kind, Arc<WatchedKind>, CancellationToken)> {
        let mut watched = self.watched.lock();
        watched.retain(|kind, _| named.contains(kind));
        let mut begun = Vec::new();
        for kind in named {
            if watched.contains_key(&kind) {
                continue;
            }
            if watched.len() == KINDS {
                warn!(%kind, "Policies name too many kinds; its objects are read one by one");
                continue;
            }
            info!(%kind, "Watching what policies refer to");
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

// === impl WatchedKind ===

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

    /// The object of that name, which may have no namespace.
    pub(super) fn find(&self, namespace: &str, name: &str) -> Option<Value> {
        let seen = self.seen.read();
        let of = |namespace: &str| seen.objects.get(&(namespace.to_owned(), name.to_owned()));
        of(namespace).or_else(|| of(""))?.read()
    }

    /// Those with the labels, within a namespace or everywhere.
    pub(super) fn with_labels(&self, namespace: &str, selector: &Value) -> Vec<Value> {
        let seen = self.seen.read();
        let objects = seen.objects.iter().filter(|((own, _), object)| {
            (namespace.is_empty() || own.is_empty() || own == namespace)
                && label_selector::matches(selector, &object.labels)
        });
        objects.filter_map(|(_, object)| object.read()).collect()
    }

    /// Follows the kind for ever.
    async fn follow(&self, cluster: &Cluster, kind: &Kind, changes: &watch::Sender<u64>) {
        let mut again = FIRST_AGAIN;
        loop {
            let end = self.follow_once(cluster, kind, changes).await;
            let pause = match (end, self.state()) {
                (WatchEnd::TooLarge, _) => {
                    warn!(%kind, "Too many objects to be held; they are read one by one");
                    self.forget();
                    changes.send_modify(|count| *count += 1);
                    LARGE_AGAIN
                }
                // An outage that is over at once is no news for anybody.
                (WatchEnd::Failed(_), KindState::Synced) => {
                    self.be(KindState::Doubtful, changes);
                    again = FIRST_AGAIN;
                    FIRST_AGAIN
                }
                (WatchEnd::Failed(problem), _) => {
                    self.be(KindState::Failing(problem), changes);
                    again = (again * 2).min(LAST_AGAIN);
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
        let config = watcher::Config::default().timeout(LONGEST);
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
                // It may be served elsewhere now, or not at all.
                Err(error) => return WatchEnd::Failed(chain(&error)),
            };
            if let Err(end) = noted {
                return end;
            }
            if is_listed {
                self.be(KindState::Synced, changes);
            }
        }
        WatchEnd::Failed("the watch ended".to_owned())
    }

    fn be(&self, state: KindState, changes: &watch::Sender<u64>) {
        if self.seen.read().state == state {
            return;
        }
        self.seen.write().state = state;
        changes.send_modify(|count| *count += 1);
    }

    fn insert(&self, object: DynamicObject, kind: &Kind, is_of_list: bool) -> Result<(), WatchEnd> {
        let key = key_of(&object);
        let Some(object) = HeldObject::new(object, kind) else {
            return Ok(());
        };
        let held = self.held.fetch_add(object.size(), Ordering::Relaxed) + object.size();
        let mut seen = self.seen.write();
        let objects = if is_of_list {
            &mut seen.listed
        } else {
            &mut seen.objects
        };
        if let Some(before) = objects.insert(key, object) {
            self.held.fetch_sub(before.size(), Ordering::Relaxed);
        }
        if held > HELD {
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
        self.let_go(&listed);
    }

    fn finish_list(&self) {
        let mut seen = self.seen.write();
        let listed = std::mem::take(&mut seen.listed);
        let before = std::mem::replace(&mut seen.objects, listed);
        drop(seen);
        self.let_go(&before);
    }

    /// Holds nothing any more.
    fn forget(&self) {
        let mut seen = self.seen.write();
        seen.state = KindState::Unwatched;
        let (objects, listed) = (
            std::mem::take(&mut seen.objects),
            std::mem::take(&mut seen.listed),
        );
        drop(seen);
        self.let_go(&objects);
        self.let_go(&listed);
    }

    fn let_go(&self, objects: &BTreeMap<(String, String), HeldObject>) {
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

// === impl HeldObject ===

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
    fn what_was_listed_takes_the_place_of_all_that_was_known_at_its_end() {
        let held = Arc::new(AtomicUsize::new(0));
        let watched = WatchedKind::new(held.clone());
        let seen = |object, is_of_list| assert!(watched.insert(object, &kind(), is_of_list).is_ok());
        seen(object("n", "a", "x"), true);
        assert!(watched.find("n", "a").is_none(), "the list is not at its end");
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
        assert_eq!(held.load(Ordering::Relaxed), 0, "nothing is held any more");
    }

    #[test]
    fn what_is_too_large_is_not_held() {
        let held = Arc::new(AtomicUsize::new(HELD));
        let watched = WatchedKind::new(held.clone());
        let inserted = watched.insert(object("n", "a", "x"), &kind(), true);
        assert!(matches!(inserted, Err(WatchEnd::TooLarge)));
        watched.forget();
        assert_eq!(
            (held.load(Ordering::Relaxed), watched.state()),
            (HELD, KindState::Unwatched)
        );
    }

    #[tokio::test]
    async fn a_kind_is_watched_as_long_as_it_is_named() {
        let nobody = tower::service_fn(|_: http::Request<kube::client::Body>| async {
            Err::<http::Response<kube::client::Body>, tower::BoxError>("nobody answers".into())
        });
        let client = kube::Client::new(nobody, "default");
        let kinds = WatchedKinds::new(Cluster::new(client, Duration::from_secs(1)));
        let begun = kinds.want_only(BTreeSet::from([kind()]));
        assert_eq!(begun.len(), 1);
        assert!(kinds.want_only(BTreeSet::from([kind()])).is_empty());
        assert_eq!(kinds.state_of(&kind()), KindState::Waiting);
        assert!(kinds.synced(&kind()).is_none());
        begun[0].1.be(KindState::Synced, &kinds.changes);
        assert!(kinds.synced(&kind()).is_some());
        begun[0].1.be(KindState::Failing("p".to_owned()), &kinds.changes);
        assert!(kinds.synced(&kind()).is_none(), "it may be out of date");
        kinds.want_only(BTreeSet::new());
        assert!(begun[0].2.is_cancelled());
        assert_eq!(kinds.state_of(&kind()), KindState::Unwatched);
    }
}
