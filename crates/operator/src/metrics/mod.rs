//! The metrics of the process and of the status of objects.

mod bundles;
mod certificates;
mod state;

use std::sync::Arc;

use windlass_cluster::{
    Clock, Index, Kind,
    events::Events,
    lease::Leadership,
    telemetry::{ApiRequests, Metrics},
    watches::Watches,
};

/// Creates the metrics of the process and of its objects.
pub(crate) fn metrics(
    index: &Arc<Index>,
    watches: &Watches,
    leadership: &Leadership,
    clock: &Arc<dyn Clock>,
    events: &Events,
    requests: &ApiRequests,
) -> Metrics {
    let metrics = Metrics::new();
    metrics.extend(|registry| requests.register(registry));
    let of_kind = |kind: &Kind, value| (vec![("kind", kind.to_string())], value);
    let sizes = index.clone();
    metrics.report(
        "index_objects",
        "Objects in the caches of the watches",
        move || {
            let sizes = sizes.sizes().into_iter();
            sizes
                .map(|(kind, size)| of_kind(&kind, i64::try_from(size).unwrap_or(i64::MAX)))
                .collect()
        },
    );
    let seen = watches.clone();
    let help = "1 for each kind whose objects this process has never listed or, in the remote cluster, cannot watch now";
    metrics.report("unlisted_kinds", help, move || {
        seen.unlisted().iter().map(|kind| of_kind(kind, 1)).collect()
    });
    let published = events.clone();
    let help = "Kubernetes events dropped by this process because its queue was full";
    metrics.report("dropped_events", help, move || {
        let dropped = i64::try_from(published.dropped()).unwrap_or(i64::MAX);
        vec![(Vec::new(), dropped)]
    });
    let leads = leadership.clone();
    let help = "1 if this process is the leader, 0 if it is a standby";
    metrics.report("leader", help, move || {
        vec![(Vec::new(), i64::from(leads.check().is_ok()))]
    });
    let clock = clock.clone();
    let help = "How far the clock of this machine is ahead of the API server's, in seconds; negative if it is behind";
    metrics.report("clock_ahead_seconds", help, move || {
        let ahead = clock.ahead();
        ahead
            .map(|ahead| (Vec::new(), ahead.as_secs()))
            .into_iter()
            .collect()
    });
    state::report(&metrics, index);
    metrics
}
