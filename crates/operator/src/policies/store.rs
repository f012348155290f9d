//! Keeps policies compiled. Every replica has such a store.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use policy::{CompiledPolicy, Engines, PolicyProblem};
use prometheus_client::{metrics::counter::Counter, registry::Registry};
use serde_json::Value;
use tokio::{
    sync::{Mutex as AsyncMutex, broadcast::error::RecvError, watch},
    task::{JoinError, spawn_blocking},
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error};
use windlass_cluster::{Index, IndexedObject, Kind, telemetry::chain};
use windlass_object::ObjectKey;

use super::{
    kinds,
    metrics::PolicyMetrics,
    snapshot::{PolicySnapshot, PolicyState, PolicyVersion},
};

/// Keeps a snapshot of all policies, compiled once per generation.
pub(crate) struct PolicyStore {
    index: Arc<Index>,
    engines: Engines,
    metrics: PolicyMetrics,
    current: watch::Sender<Arc<PolicySnapshot>>,
    /// The policies at the last refresh. A lock over the whole refresh keeps an older one from replacing a
    /// newer one.
    seen: AsyncMutex<BTreeMap<ObjectKey, (IndexedObject, Arc<PolicyState>)>>,
    /// Notifies when a suspension begins or ends.
    suspensions: watch::Sender<()>,
    /// Serializes updates of the suspension metric.
    counting: Mutex<()>,
}

impl PolicyStore {
    /// Creates the store of the policies in `index`, which is empty until [`PolicyStore::run`] fills it.
    pub(crate) fn new(index: Arc<Index>, engines: Engines, metrics: PolicyMetrics) -> Self {
        Self {
            index,
            engines,
            metrics,
            current: watch::Sender::default(),
            seen: AsyncMutex::default(),
            suspensions: watch::Sender::default(),
            counting: Mutex::default(),
        }
    }

    /// Creates a store without metrics.
    pub(crate) fn without_metrics(index: Arc<Index>) -> Self {
        let metrics = PolicyMetrics::register(&mut Registry::default());
        Self::new(index, Engines::built_in(), metrics)
    }

    /// Returns the engines that compile policies.
    pub(super) fn engines(&self) -> &Engines {
        &self.engines
    }

    pub(super) fn metrics(&self) -> &PolicyMetrics {
        &self.metrics
    }

    /// Returns the counter of requests whose audit results are missing in reports.
    pub(crate) fn unreported(&self) -> Counter {
        self.metrics.unreported()
    }

    /// Returns the current policies.
    pub(crate) fn current(&self) -> Arc<PolicySnapshot> {
        self.current.borrow().clone()
    }

    /// Subscribes to changes of the policies.
    pub(crate) fn changes(&self) -> watch::Receiver<Arc<PolicySnapshot>> {
        self.current.subscribe()
    }

    /// Subscribes to suspensions in this process.
    pub(super) fn suspensions(&self) -> watch::Receiver<()> {
        self.suspensions.subscribe()
    }

    /// Publishes that a suspension began or ended.
    pub(super) fn note_suspensions(&self) {
        self.count_suspensions();
        self.suspensions.send_replace(());
    }

    fn count_suspensions(&self) {
        let _counting = self.counting.lock();
        self.metrics.set_suspended(self.current().suspensions());
    }

    /// Compiles policies as they change, until `shutdown`.
    ///
    /// # Errors
    ///
    /// When the runtime shuts down.
    pub(crate) async fn run(self: Arc<Self>, shutdown: CancellationToken) -> Result<(), JoinError> {
        let mut changes = self.index.subscribe();
        let mut lists = self.index.progress();
        loop {
            self.refresh().await?;
            tokio::select! {
                () = shutdown.cancelled() => return Ok(()),
                _ = lists.changed() => {}
                () = wait_for_policy_change(&mut changes) => {}
            }
        }
    }

    /// Returns all policies, after a refresh if some were not loaded yet.
    ///
    /// # Errors
    ///
    /// When the runtime shuts down.
    pub(crate) async fn synced(&self) -> Result<Arc<PolicySnapshot>, JoinError> {
        if !self.current().is_complete {
            self.refresh().await?;
        }
        Ok(self.current())
    }

    /// Compiles new and changed policies, and returns how many objects it had to read. Objects that are
    /// unchanged since the last refresh are not read.
    pub(super) async fn refresh(&self) -> Result<usize, JoinError> {
        let mut seen = self.seen.lock().await;
        let known = self.current();
        // Checked before reading the objects, so that a complete kind has all of them.
        let is_complete =
            kinds::watches().all(|watch| self.index.is_complete(&watch) || self.index.is_absent(&watch));
        let mut read = 0;
        let mut now = BTreeMap::new();
        for (key, indexed) in kinds::watches().flat_map(|watch| self.index.indexed(&watch.kind)) {
            let state = match seen.get(&key) {
                Some((before, state)) if *before == indexed => state.clone(),
                _ => {
                    read += 1;
                    let object = indexed.read();
                    match known.state_of(&key, &object) {
                        Some(state) => state.clone(),
                        None => Arc::new(self.compile(&key, object).await?),
                    }
                }
            };
            now.insert(key, (indexed, state));
        }
        *seen = now;
        let states = seen.iter().map(|(key, (_, state))| (key.clone(), state.clone()));
        let policies: BTreeMap<_, _> = states.collect();
        let is_same = known.is_complete == is_complete
            && known.policies.len() == policies.len()
            && policies.iter().all(|(key, state)| {
                known
                    .policies
                    .get(key)
                    .is_some_and(|known| Arc::ptr_eq(known, state))
            });
        if !is_same {
            let count = policies.len();
            let next = Arc::new(PolicySnapshot::new(policies, is_complete));
            self.metrics
                .retain_policies(next.set.policies().map(|policy| policy.key()));
            self.current.send_replace(next);
            self.count_suspensions();
            debug!(count, is_complete, "Loaded the policies for requests");
        }
        Ok(read)
    }

    /// Compiles a policy on a blocking thread. A panic of the compiler affects only this policy.
    async fn compile(&self, key: &ObjectKey, object: Arc<Value>) -> Result<PolicyState, JoinError> {
        let version = PolicyVersion::from_object(&object);
        let engines = self.engines.clone();
        let compiled = spawn_blocking(move || CompiledPolicy::compile(&object, &engines)).await;
        let compiled = match compiled {
            Ok(compiled) => compiled.map(Arc::new),
            Err(failed) if failed.is_panic() => {
                error!(policy = %key, error = chain(&failed), "Compiling a policy failed");
                let message = "the compiler panicked; report this as a bug of Windlass";
                Err(vec![PolicyProblem::new("spec", message)])
            }
            Err(stopped) => return Err(stopped),
        };
        Ok(PolicyState::new(version, compiled))
    }
}

/// Waits until a policy may have changed.
async fn wait_for_policy_change(changes: &mut tokio::sync::broadcast::Receiver<windlass_cluster::Change>) {
    loop {
        match changes.recv().await {
            Ok(change) if kinds::is_policy(&Kind::from_key(&change.key)) => return,
            Ok(_) => {}
            Err(RecvError::Lagged(_)) => return,
            // The index outlives its readers.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_cluster::{kinds::CLUSTER_OVERRIDE_POLICY, watch::Watch};

    use super::*;

    fn policy(name: &str, generation: i64, op: &str) -> Value {
        json!({
            "apiVersion": CLUSTER_OVERRIDE_POLICY.api_version, "kind": CLUSTER_OVERRIDE_POLICY.kind,
            "metadata": {"name": name, "uid": format!("u-{name}"), "generation": generation},
            "spec": {"overrideRules": [{"overriders": {"plaintext": [{"op": op, "path": "/a", "value": 1}]}}]},
        })
    }

    fn store_of(index: &Arc<Index>) -> PolicyStore {
        PolicyStore::without_metrics(index.clone())
    }

    /// Marks all kinds as listed except the first `unlisted` ones.
    fn list_kinds(index: &Index, unlisted: usize) {
        for watch in kinds::watches().skip(unlisted) {
            index.begin_relist(&watch);
            index.finish_relist(&watch);
        }
    }

    #[tokio::test]
    async fn each_generation_is_compiled_once_and_deleted_policies_are_dropped() {
        let index = Arc::new(Index::new());
        let store = store_of(&index);
        list_kinds(&index, 0);
        let watch = Watch::all(CLUSTER_OVERRIDE_POLICY);
        index.apply(&watch, policy("a", 1, "add"));
        index.apply(&watch, policy("b", 1, "add"));
        store.refresh().await.unwrap();
        let first = store.current();
        assert_eq!((first.set.policies().count(), first.is_complete), (2, true));
        assert_eq!(store.refresh().await.unwrap(), 0, "nothing is read again");
        assert!(Arc::ptr_eq(&first, &store.current()), "nothing has changed");

        index.apply(&watch, policy("a", 2, "remove"));
        assert_eq!(store.refresh().await.unwrap(), 1, "one policy has changed");
        let second = store.current();
        let state = |snapshot: &PolicySnapshot, name| {
            snapshot.policies[&CLUSTER_OVERRIDE_POLICY.object(None, name)].clone()
        };
        assert!(Arc::ptr_eq(&state(&first, "b"), &state(&second, "b")));
        assert_eq!(state(&second, "a").version.generation, Some(2));

        index.delete(&watch, &CLUSTER_OVERRIDE_POLICY.object(None, "a"));
        store.refresh().await.unwrap();
        assert_eq!(store.current().set.policies().count(), 1);
    }

    #[tokio::test]
    async fn an_unreadable_policy_does_not_affect_others() {
        let index = Arc::new(Index::new());
        let store = store_of(&index);
        list_kinds(&index, 0);
        let watch = Watch::all(CLUSTER_OVERRIDE_POLICY);
        index.apply(&watch, policy("a", 1, "put"));
        index.apply(&watch, policy("b", 1, "add"));
        store.refresh().await.unwrap();
        let current = store.current();
        assert_eq!((current.set.policies().count(), current.policies.len()), (1, 2));
    }

    #[tokio::test]
    async fn a_snapshot_is_complete_when_every_kind_is_listed_or_not_served() {
        let index = Arc::new(Index::new());
        let store = store_of(&index);
        store.refresh().await.unwrap();
        assert!(!store.current().is_complete);
        list_kinds(&index, 1);
        store.refresh().await.unwrap();
        assert!(!store.current().is_complete);
        index.mark_absent(&Watch::all(CLUSTER_OVERRIDE_POLICY));
        store.refresh().await.unwrap();
        assert!(store.current().is_complete);
    }
}
