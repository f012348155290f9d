//! What every controller works with.

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

use crate::{ca_injectors::Opponents, interpretation::Interpretation, policies::PolicyStore};

/// What every controller works with.
pub struct Context {
    /// Requests to the API servers. Writes reach them only while this process leads.
    pub cluster: Cluster,
    /// Whether this process leads.
    pub leadership: Leadership,
    /// What the watches have seen.
    pub index: Arc<Index>,
    /// Starts further watches.
    pub watches: Watches,
    /// Applies objects.
    pub applier: Applier,
    /// Says whether objects of bundles are healthy, what they depend on, and what of them is kept.
    pub(crate) interpretation: Arc<Interpretation>,
    /// The policies that there are, where a controller needs them.
    pub(crate) policies: Arc<PolicyStore>,
    /// Publishes events.
    pub events: Events,
    /// Who was seen to take back what we had written into targets.
    pub(crate) opponents: Arc<Opponents>,
    /// How many targets are written at a time.
    pub pace: WritePace,
    /// The targets of the remote cluster, if there is one.
    pub remote: Option<RemoteTargets>,
    /// Dials endpoints.
    pub prober: Prober,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Counts.
    pub metrics: Arc<Metrics>,
    /// Where traces of rotations and installs are sent, if anywhere.
    pub traces: Traces,
    /// The operator's own namespace.
    pub namespace: String,
    /// Where directories of bundles are, if anywhere.
    pub bundle_directory: Option<PathBuf>,
}

/// The targets of the remote cluster.
pub struct RemoteTargets {
    /// The Secret with the kubeconfig.
    secret: ObjectKey,
    /// How many are written at a time: nobody in the own cluster waits for an API server that takes long.
    pace: WritePace,
}

// === impl Context ===

impl Context {
    /// That of a process which always leads, for tests: what `cluster` answers, and no watches.
    #[cfg(test)]
    pub(crate) fn of_leader(cluster: Cluster, index: Arc<Index>, clock: Arc<dyn Clock>) -> Self {
        let namespace = "windlass-system";
        let served = windlass_cluster::kinds::SECRET.object(Some(namespace), "windlass-cert");
        let (watches, _) = Watches::new(cluster.clone(), index.clone(), served);
        let interpretation = Arc::new(Interpretation::reading(index.clone()));
        Self {
            leadership: Leadership::always(),
            watches,
            applier: Applier::new(cluster.clone(), index.clone()).retaining(interpretation.clone()),
            interpretation,
            policies: Arc::new(PolicyStore::untold(index.clone())),
            index,
            events: Events::new(cluster.clone(), None).0,
            cluster,
            opponents: Arc::default(),
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

    /// Tells kinds of targets from others.
    pub(crate) fn is_target(&self) -> impl Fn(&Kind) -> bool + '_ {
        |kind| self.index.is_target(kind)
    }

    /// How many targets are written at a time where this one is.
    pub(crate) fn pace_of(&self, target: &ObjectKey) -> &WritePace {
        match &self.remote {
            Some(remote) if target.cluster == InCluster::Remote => &remote.pace,
            _ => &self.pace,
        }
    }

    /// Whether it is known how a target is: nobody is to wait for a remote cluster that does not answer.
    pub(crate) fn is_seen(&self, target: &ObjectKey) -> bool {
        target.cluster == InCluster::Local || !self.watches.unlisted().contains(&Kind::from_key(target))
    }

    /// Says in an event that something has become of a target.
    pub(crate) fn note_of_target(&self, key: &ObjectKey, target: &Value, reason: &str, note: &str) {
        let (about, note) = self.event_of(key, target, note);
        self.events.note(&about, "Inject", reason, &note);
    }

    /// Says in an event that something about a target needs attention.
    pub(crate) fn warn_of_target(&self, key: &ObjectKey, target: &Value, reason: &str, note: &str) {
        let (about, note) = self.event_of(key, target, note);
        self.events.warn(&about, "Inject", reason, &note);
    }

    /// Events are of the own cluster: of a target that is elsewhere, they are about the Secret that leads there.
    fn event_of<'a>(
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

// === impl RemoteTargets ===

impl RemoteTargets {
    /// Those of the cluster that the kubeconfig in a Secret leads to.
    pub fn new(secret: ObjectKey) -> Self {
        Self {
            secret,
            pace: WritePace::new(),
        }
    }
}
