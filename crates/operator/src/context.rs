//! What every controller works with.

use std::{path::PathBuf, sync::Arc};

use windlass_cluster::{
    Clock, Cluster, Index, Kind, WritePace, apply::Applier, events::Events, lease::Leadership,
    prober::Prober, telemetry::Metrics, watches::Watches,
};

use crate::ca_injectors::Opponents;

/// What every controller works with.
pub struct Context {
    /// Requests to the API server. Writes reach it only while this process leads.
    pub cluster: Cluster,
    /// Whether this process leads.
    pub leadership: Leadership,
    /// What the watches have seen.
    pub index: Arc<Index>,
    /// Starts further watches.
    pub watches: Watches,
    /// Applies objects.
    pub applier: Applier,
    /// Publishes events.
    pub events: Events,
    /// Who was seen to take back what we had written into targets.
    pub(crate) opponents: Arc<Opponents>,
    /// How many targets are written at a time.
    pub pace: WritePace,
    /// Dials endpoints.
    pub prober: Prober,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Counts.
    pub metrics: Arc<Metrics>,
    /// The operator's own namespace.
    pub namespace: String,
    /// Where directories of bundles are, if anywhere.
    pub bundle_directory: Option<PathBuf>,
}

// === impl Context ===

impl Context {
    /// Tells kinds of targets from others.
    pub(crate) fn is_target(&self) -> impl Fn(&Kind) -> bool + '_ {
        |kind| self.index.is_target(kind)
    }
}
