//! The set of running watches: one task each, all writing to one index.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{sync::mpsc, task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, info_span};
use windlass_object::{InCluster, ObjectKey};

use crate::{
    index::Index,
    kind::{Kind, kinds},
    requests::Cluster,
    watch::{UnlistedWatch, Watch},
    watch_loop::run_watch,
};

/// Starts and stops watches.
#[derive(Clone)]
pub struct Watches {
    shared: Arc<Shared>,
}

struct Shared {
    cluster: Cluster,
    index: Arc<Index>,
    /// The Secret whose private key is read from the index.
    served: ObjectKey,
    running: Mutex<HashMap<Watch, Running>>,
    started: mpsc::UnboundedSender<(Watch, CancellationToken)>,
}

/// A running watch, and the components that want it.
struct Running {
    stop: CancellationToken,
    /// The components that want it; empty if it is wanted forever.
    by: HashSet<&'static str>,
    /// When it was first wanted.
    since: Instant,
    /// Why the last list or watch failed.
    problem: Option<String>,
}

/// Runs the wanted watches; ends only at shutdown, or when one of them panics.
pub struct Supervisor {
    watches: Watches,
    starts: mpsc::UnboundedReceiver<(Watch, CancellationToken)>,
}

/// How long all controllers wait for the first list of a kind that only some need. Controllers that need it
/// wait longer.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);

/// How long controllers that can work without a kind wait for its first list: longer than it takes in most
/// clusters.
const OPTIONAL_LIST_TIMEOUT: Duration = Duration::from_secs(1);

impl Watches {
    /// Watches through `cluster` into `index`, which holds the private key of one Secret: `served`. Watches
    /// start with the supervisor.
    pub fn new(cluster: Cluster, index: Arc<Index>, served: ObjectKey) -> (Self, Supervisor) {
        let (started, starts) = mpsc::unbounded_channel();
        let shared = Shared {
            cluster,
            index,
            served,
            running: Mutex::default(),
            started,
        };
        let watches = Self {
            shared: Arc::new(shared),
        };
        (watches.clone(), Supervisor { watches, starts })
    }

    /// Starts `watch`, which then runs for as long as the process.
    pub fn start(&self, watch: Watch) {
        self.begin(watch, std::collections::HashSet::clear, HashSet::new());
    }

    /// Sets the watches that the component `by` wants. Watches that no component wants are stopped.
    pub fn set_wanted(&self, by: &'static str, desired: HashSet<Watch>) {
        {
            let mut running = self.shared.running.lock();
            running.retain(|watch, state| {
                let was_desired = !desired.contains(watch) && state.by.remove(by);
                let keep = !was_desired || !state.by.is_empty();
                if !keep {
                    state.stop.cancel();
                }
                keep
            });
        }
        for watch in desired {
            let join = |wanting: &mut HashSet<_>| {
                // Watches that are wanted forever stay so.
                if !wanting.is_empty() {
                    wanting.insert(by);
                }
            };
            self.begin(watch, join, HashSet::from([by]));
        }
    }

    /// Starts a watch that these components want, or calls `join` for a running one.
    fn begin(&self, watch: Watch, join: impl FnOnce(&mut HashSet<&'static str>), by: HashSet<&'static str>) {
        let mut running = self.shared.running.lock();
        if let Some(state) = running.get_mut(&watch) {
            join(&mut state.by);
            return;
        }
        let stop = CancellationToken::new();
        let state = Running {
            stop: stop.clone(),
            by,
            since: Instant::now(),
            problem: None,
        };
        running.insert(watch.clone(), state);
        // The receiver is dropped only at shutdown.
        let _ = self.shared.started.send((watch, stop));
    }

    /// Reports whether every wanted watch of a kind that this cluster's API server serves itself has a
    /// complete list; watches of other kinds may time out, since their conversion webhook may be down for
    /// days.
    pub fn are_complete(&self) -> bool {
        self.remaining_wait(list_timeout).is_none()
    }

    /// Reports whether a watch of one of these kinds is still listing: there was no error yet.
    pub fn are_listing(&self, kinds: impl Fn(&Kind) -> bool) -> bool {
        let running = self.shared.running.lock();
        running.iter().any(|(watch, state)| {
            kinds(&watch.kind)
                && state.problem.is_none()
                && state.since.elapsed() < LIST_TIMEOUT
                && !self.shared.index.is_complete(watch)
        })
    }

    /// Waits until all watches have listed their objects.
    pub async fn wait_until_complete(&self) {
        self.wait_for_lists(list_timeout).await;
    }

    /// Waits as [`Watches::wait_until_complete`] does, but only briefly for these kinds.
    pub async fn wait_until_complete_except(&self, kinds: impl Fn(&Kind) -> bool) {
        self.wait_for_lists(|watch| {
            if kinds(&watch.kind) {
                Some(OPTIONAL_LIST_TIMEOUT)
            } else {
                list_timeout(watch)
            }
        })
        .await;
    }

    async fn wait_for_lists(&self, patience: impl Fn(&Watch) -> Option<Duration>) {
        let mut progress = self.shared.index.progress();
        while let Some(left) = self.remaining_wait(&patience) {
            tokio::select! {
                // The sender is owned by the index of this struct.
                _ = progress.changed() => {}
                () = tokio::time::sleep(left) => {}
            }
        }
    }

    /// Returns the kinds with a wanted watch without a complete list. Unseen objects of them may exist.
    pub fn unlisted(&self) -> BTreeSet<Kind> {
        let running = self.shared.running.lock();
        let incomplete = running
            .keys()
            .filter(|watch| !self.shared.index.is_complete(watch));
        incomplete.map(|watch| watch.kind.clone()).collect()
    }

    /// Returns the kinds of targets without a complete list: objects of them may request a trust bundle. All
    /// kinds may be targets until the InjectionTargets are listed.
    pub fn unlisted_targets(&self) -> BTreeSet<Kind> {
        let running = self.shared.running.lock();
        let index = &self.shared.index;
        let kinds = index.target_kinds();
        let added = kinds.added().iter().flat_map(Watch::for_target);
        let desired = running.keys().filter(|watch| {
            watch.kind == kinds::INJECTION_TARGET || (index.is_target(&watch.kind) && watch.sees_all())
        });
        let watches: BTreeSet<_> = desired.cloned().chain(added).collect();
        let incomplete = watches.into_iter().filter(|watch| !index.is_complete(watch));
        incomplete.map(|watch| watch.kind).collect()
    }

    /// Returns the watches of [`Watches::unlisted`], with their errors.
    pub fn unlisted_watches(&self) -> Vec<UnlistedWatch> {
        let running = self.shared.running.lock();
        let incomplete = running
            .iter()
            .filter(|(watch, _)| !self.shared.index.is_complete(watch));
        let mut unlisted: Vec<_> = incomplete
            .map(|(watch, state)| UnlistedWatch {
                watch: watch.clone(),
                problem: state.problem.clone(),
            })
            .collect();
        unlisted.sort_by(|one, other| one.watch.cmp(&other.watch));
        unlisted
    }

    /// Returns how long to wait before checking again: [`Duration::MAX`] until a notification. `None`: the
    /// wait is over. `patience` returns how long to wait for the first list of a watch; `None`: forever.
    fn remaining_wait(&self, patience: impl Fn(&Watch) -> Option<Duration>) -> Option<Duration> {
        let running = self.shared.running.lock();
        running
            .iter()
            .filter(|(watch, _)| !self.shared.index.is_complete(watch))
            .map(|(watch, state)| match patience(watch) {
                Some(patience) => patience.saturating_sub(state.since.elapsed()),
                None => Duration::MAX,
            })
            .filter(|left| !left.is_zero())
            .min()
    }
}

/// Returns how long all controllers wait for the first list of a watch; `None`: forever.
fn list_timeout(watch: &Watch) -> Option<Duration> {
    match watch.kind.cluster {
        InCluster::Local => (!watch.is_essential()).then_some(LIST_TIMEOUT),
        // Controllers do not wait for the remote cluster.
        InCluster::Remote => Some(OPTIONAL_LIST_TIMEOUT),
    }
}

impl Shared {
    /// Forgets the objects of an ended watch, unless it is wanted again: then another task fills its store,
    /// and replaces outdated objects.
    fn forget_ended(&self, watch: &Watch) {
        let running = self.running.lock();
        if !running.contains_key(watch) {
            self.index.close(watch);
        }
    }

    /// Records why a list or watch failed, or that it works.
    fn note(&self, watch: &Watch, problem: Option<String>) {
        if let Some(state) = self.running.lock().get_mut(watch) {
            state.problem = problem;
        }
    }
}

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
                        let note = |problem| shared.note(&watch, problem);
                        tokio::select! {
                            () = stop.cancelled() => {}
                            () = run_watch(&shared.cluster, &shared.index, &watch, &shared.served, &note) => {}
                        }
                        shared.forget_ended(&watch);
                    }.instrument(span));
                }
                Some(ended) = tasks.join_next() => ended?,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::{Client, client::Body};
    use serde_json::json;
    use tower::{BoxError, service_fn};

    use super::*;
    use crate::watch::Selector;

    fn watches() -> (Watches, Arc<Index>) {
        let unavailable = service_fn(|_: http::Request<Body>| async {
            Err::<http::Response<Body>, BoxError>("no response".into())
        });
        let cluster = Cluster::new(Client::new(unavailable, "default"), Duration::from_secs(1));
        let index = Arc::new(Index::new());
        let served = kinds::SECRET.object(Some("windlass-system"), "windlass-cert");
        (Watches::new(cluster, index.clone(), served).0, index)
    }

    #[tokio::test(start_paused = true)]
    async fn a_kind_that_cannot_be_listed_times_out() {
        let (watches, index) = watches();
        let extension_configs = Watch::all(Kind::new("runtime.cluster.x-k8s.io/v1beta2", "ExtensionConfig"));
        watches.start(extension_configs.clone());
        watches.start(Watch::all(kinds::SERVICE));
        assert!(!watches.are_complete());
        index.finish_relist(&Watch::all(kinds::SERVICE));
        assert!(!watches.are_complete(), "the other one has its timeout, too");
        assert!(
            watches
                .remaining_wait(list_timeout)
                .is_some_and(|left| left <= LIST_TIMEOUT)
        );
        let started = Instant::now();
        watches.wait_until_complete().await;
        assert!(started.elapsed() >= LIST_TIMEOUT, "{:?}", started.elapsed());
        assert!(watches.are_complete());
        assert_eq!(
            watches.unlisted(),
            BTreeSet::from([extension_configs.kind.clone()])
        );
        index.finish_relist(&extension_configs);
        assert_eq!(watches.unlisted(), BTreeSet::new());
    }

    #[tokio::test(start_paused = true)]
    async fn optional_kinds_delay_only_briefly() {
        let (watches, index) = watches();
        let crds = Watch::all(kinds::CUSTOM_RESOURCE_DEFINITION);
        let dispensable = |kind: &Kind| *kind == crds.kind;
        watches.start(crds.clone());
        watches.start(Watch::all(kinds::SECRET));
        let soon = |waiting| tokio::time::timeout(LIST_TIMEOUT / 2, waiting);
        assert!(
            soon(watches.wait_until_complete_except(dispensable))
                .await
                .is_err(),
            "Secrets are not listed yet"
        );
        index.finish_relist(&Watch::all(kinds::SECRET));
        soon(watches.wait_until_complete_except(dispensable))
            .await
            .unwrap();
        assert!(!watches.are_complete());
        assert!(watches.are_listing(dispensable));
        assert!(!watches.are_listing(|kind| *kind == kinds::SECRET));
        watches.shared.note(&crds, Some("forbidden".to_owned()));
        assert!(!watches.are_listing(dispensable), "its list has failed");
        watches.shared.note(&crds, None);
        tokio::time::sleep(LIST_TIMEOUT).await;
        assert!(!watches.are_listing(dispensable), "it takes too long");
        index.finish_relist(&crds);
        assert!(watches.are_complete());
    }

    #[tokio::test]
    async fn a_restarted_watch_keeps_its_objects() {
        let (watches, index) = watches();
        let watch = Watch::all(kinds::NAMESPACE);
        let set_wanted =
            |desired: &[&Watch]| watches.set_wanted("a", desired.iter().copied().cloned().collect());
        set_wanted(&[&watch]);
        set_wanted(&[]);
        set_wanted(&[&watch]);
        index.finish_relist(&watch);
        watches.shared.forget_ended(&watch);
        assert!(
            index.is_complete(&watch),
            "the first task ends after the second has started"
        );
        set_wanted(&[]);
        watches.shared.forget_ended(&watch);
        assert!(!index.is_complete(&watch));
    }

    #[tokio::test]
    async fn a_watch_runs_while_a_component_wants_it() {
        let (watches, _) = watches();
        let [one, both, always] = ["one", "both", "always"]
            .map(|name| Watch::all(kinds::CONFIG_MAP).selected(Selector::Name(name.to_owned())));
        let set_wanted =
            |by, desired: &[&Watch]| watches.set_wanted(by, desired.iter().copied().cloned().collect());
        let run = |watch: &Watch| watches.shared.running.lock().contains_key(watch);
        set_wanted("a", &[&one, &both, &always]);
        set_wanted("b", &[&both]);
        watches.start(always.clone());
        set_wanted("b", &[&both]);
        assert!(run(&one), "b did not start it");
        set_wanted("a", &[]);
        assert!(!run(&one) && run(&both) && run(&always));
        set_wanted("b", &[&always]);
        assert!(!run(&both));
        set_wanted("b", &[]);
        assert!(run(&always));
    }

    #[tokio::test]
    async fn an_unlisted_watch_reports_its_error() {
        let forbidding = service_fn(|request: http::Request<Body>| async move {
            let (code, body) = match request.uri().path() {
                "/apis/example.com/v1" => (
                    200,
                    json!({"resources": [{"name": "odds", "kind": "Odd", "namespaced": true}]}),
                ),
                _ => (
                    403,
                    json!({"kind": "Status", "code": 403, "reason": "Forbidden", "message": "odds is forbidden", "status": "Failure"}),
                ),
            };
            let answer = http::Response::builder().status(code);
            Ok::<_, BoxError>(answer.body(Body::from(body.to_string().into_bytes()))?)
        });
        let cluster = Cluster::new(Client::new(forbidding, "default"), Duration::from_secs(1));
        let served = kinds::SECRET.object(Some("n"), "windlass-cert");
        let (watches, supervisor) = Watches::new(cluster, Arc::new(Index::new()), served);
        let watch = Watch::all(Kind::new("example.com/v1", "Odd"));
        watches.start(watch.clone());
        let only = || watches.unlisted_watches().pop().unwrap();
        assert_eq!(only().to_string(), "example.com/v1, Kind=Odd: no answer yet");
        let running = tokio::spawn(supervisor.run(CancellationToken::new()));
        let refused = async {
            while only().problem.is_none() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), refused)
            .await
            .unwrap();
        assert!(only().to_string().contains("odds is forbidden"), "{}", only());
        watches.shared.index.finish_relist(&watch);
        assert_eq!(watches.unlisted_watches(), []);
        running.abort();
    }

    #[tokio::test]
    async fn essential_kinds_never_time_out() {
        let (watches, index) = watches();
        watches.start(Watch::all(kinds::SECRET));
        assert_eq!(watches.remaining_wait(list_timeout), Some(Duration::MAX));
        let waiting = tokio::spawn({
            let watches = watches.clone();
            async move { watches.wait_until_complete().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        index.finish_relist(&Watch::all(kinds::SECRET));
        tokio::time::timeout(Duration::from_secs(10), waiting)
            .await
            .unwrap()
            .unwrap();
    }

    #[tokio::test]
    async fn target_kinds_are_unlisted_until_all_are_known_and_listed() {
        let (watches, index) = watches();
        let unlisted = || -> Vec<_> {
            let kinds = watches.unlisted_targets().into_iter();
            kinds.map(|kind| kind.kind.into_owned()).collect()
        };
        watches.start(Watch::all(kinds::SERVICE));
        watches.start(Watch::all(kinds::CONFIG_MAP).selected(Selector::Label("records".to_owned())));
        assert_eq!(unlisted(), [""; 0], "none of them is a target");
        let hooks = Watch::all(kinds::VALIDATING_WEBHOOK_CONFIGURATION);
        let added = Watch::all(kinds::INJECTION_TARGET);
        watches.start(hooks.clone());
        watches.start(added.clone());
        assert_eq!(unlisted(), ["ValidatingWebhookConfiguration", "InjectionTarget"]);
        index.finish_relist(&hooks);
        let gateways = json!({
            "apiVersion": "windlass.dev/v1alpha1", "kind": "InjectionTarget", "metadata": {"name": "gateways"},
            "spec": {"group": "example.com", "version": "v1", "kind": "Gateway", "plural": "gateways",
                "paths": [{"path": "/spec/caBundle"}]},
        });
        index.relist(&added, gateways);
        index.finish_relist(&added);
        assert_eq!(unlisted(), ["Gateway"], "it is not wanted yet");
        let kinds = index.target_kinds();
        let watch = Watch::for_target(&kinds.added()[0]).next().unwrap();
        index.finish_relist(&watch);
        assert_eq!(unlisted(), [""; 0]);
        let remote = Watch::for_remote_targets().next().unwrap();
        watches.start(remote.clone());
        assert_eq!(unlisted(), ["CustomResourceDefinition"], "in the remote cluster");
        index.finish_relist(&remote);
        assert_eq!(unlisted(), [""; 0]);
        index.mark_outdated(&remote);
        assert_eq!(unlisted(), ["CustomResourceDefinition"]);
    }
}
