//! Shared dependencies of the controllers.

use std::{borrow::Cow, path::PathBuf, sync::Arc};

use serde_json::{Value, json};
use windlass_cluster::{
    Clock, Cluster, Index, Kind, WritePace,
    apply::Applier,
    events::Events,
    lease::Leadership,
    prober::Prober,
    telemetry::{Metrics, traces::Traces},
    watches::Watches,
};
use windlass_object::{InCluster, ObjectKey};

use crate::{ca_injectors::CompetingInjectors, interpretation::Interpretation, policies::PolicyStore};

/// Shared dependencies of the controllers.
pub struct Context {
    /// Client of the API servers. Writes reach them only while this process is the leader.
    pub cluster: Cluster,
    /// Whether this process is the leader.
    pub leadership: Leadership,
    /// The objects that the watches have delivered.
    pub index: Arc<Index>,
    /// Starts further watches.
    pub watches: Watches,
    /// Applies objects of bundles.
    pub applier: Applier,
    /// Health, dependencies and retained fields of objects in bundles.
    pub(crate) interpretation: Arc<Interpretation>,
    /// The loaded policies.
    pub(crate) policies: Arc<PolicyStore>,
    /// Publishes events.
    pub events: Events,
    /// Other CA injectors that have overwritten targets.
    pub(crate) competing_injectors: Arc<CompetingInjectors>,
    /// Limits concurrent writes of targets.
    pub pace: WritePace,
    /// The targets of the remote cluster, if there is one.
    pub remote: Option<RemoteTargets>,
    /// Probes endpoints.
    pub prober: Prober,
    /// The clock for deadlines and timestamps.
    pub clock: Arc<dyn Clock>,
    /// The metrics of this process.
    pub metrics: Arc<Metrics>,
    /// Traces of rotations and installs.
    pub traces: Traces,
    /// The operator's own namespace.
    pub namespace: String,
    /// Root of the directories with bundles.
    pub bundle_directory: Option<PathBuf>,
}

/// The targets of the remote cluster.
pub struct RemoteTargets {
    /// The Secret with the kubeconfig.
    secret: ObjectKey,
    /// Limits concurrent writes, so that a slow remote API server does not delay writes in the local cluster.
    pace: WritePace,
}

impl Context {
    /// Creates the context of a process that is always the leader, for tests. It has no watches.
    #[cfg(test)]
    pub(crate) fn for_leader(cluster: Cluster, index: Arc<Index>, clock: Arc<dyn Clock>) -> Self {
        let namespace = "windlass-system";
        let served = windlass_cluster::kinds::SECRET.object(Some(namespace), "windlass-cert");
        let (watches, _) = Watches::new(cluster.clone(), index.clone(), served);
        let interpretation = Arc::new(Interpretation::without_webhooks(index.clone()));
        Self {
            leadership: Leadership::always(),
            watches,
            applier: Applier::new(cluster.clone(), index.clone()).retaining(interpretation.clone()),
            interpretation,
            policies: Arc::new(PolicyStore::without_metrics(index.clone())),
            index,
            events: Events::new(cluster.clone(), None).0,
            cluster,
            competing_injectors: Arc::default(),
            pace: WritePace::new(),
            remote: None,
            prober: Prober {
                timeout: std::time::Duration::from_secs(10),
                clock: clock.clone(),
            },
            clock,
            metrics: Arc::default(),
            traces: Traces::default(),
            namespace: namespace.to_owned(),
            bundle_directory: None,
        }
    }

    /// Returns a predicate for the kinds of targets.
    pub(crate) fn is_target(&self) -> impl Fn(&Kind) -> bool + '_ {
        |kind| self.index.is_target(kind)
    }

    /// Returns the limit of concurrent writes in the cluster of a target.
    pub(crate) fn pace_of(&self, target: &ObjectKey) -> &WritePace {
        match &self.remote {
            Some(remote) if target.cluster == InCluster::Remote => &remote.pace,
            _ => &self.pace,
        }
    }

    /// Reports whether the state of a target is known. Targets of an unreachable remote cluster are not
    /// waited for.
    pub(crate) fn is_target_known(&self, target: &ObjectKey) -> bool {
        target.cluster == InCluster::Local || !self.watches.unlisted().contains(&Kind::from_key(target))
    }

    /// Publishes an event about a target.
    pub(crate) fn publish_target_note(&self, key: &ObjectKey, target: &Value, reason: &str, note: &str) {
        let (about, note) = self.event_subject(key, target, note);
        self.events.note(&about, "Inject", reason, &note);
    }

    /// Publishes a warning about a target.
    pub(crate) fn publish_target_warning(&self, key: &ObjectKey, target: &Value, reason: &str, note: &str) {
        let (about, note) = self.event_subject(key, target, note);
        self.events.warn(&about, "Inject", reason, &note);
    }

    /// Returns the object that an event about a target refers to. For a target in the remote cluster it is
    /// the Secret with the kubeconfig, since events are written to the local cluster.
    fn event_subject<'a>(
        &self,
        key: &ObjectKey,
        target: &'a Value,
        note: &'a str,
    ) -> (Cow<'a, Value>, Cow<'a, str>) {
        match &self.remote {
            Some(RemoteTargets { secret, .. }) if key.cluster == InCluster::Remote => {
                let about = json!({
                    "apiVersion": secret.api_version, "kind": secret.kind,
                    "metadata": {"namespace": secret.namespace, "name": secret.name},
                });
                let known = self.index.find(secret).map(|secret| Value::clone(&secret));
                (
                    Cow::Owned(known.unwrap_or(about)),
                    format!("{key}: {note}").into(),
                )
            }
            _ => (Cow::Borrowed(target), note.into()),
        }
    }
}

impl RemoteTargets {
    /// Creates the targets of the cluster that the kubeconfig in a Secret refers to.
    pub fn new(secret: ObjectKey) -> Self {
        Self {
            secret,
            pace: WritePace::new(),
        }
    }
}
