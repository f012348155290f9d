//! What `/metrics` says.

use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, text::encode},
    metrics::{MetricType, counter::Counter, family::Family, gauge::ConstGauge, histogram::Histogram},
    registry::Registry,
};

/// Everything that is counted.
#[derive(Debug)]
pub struct Metrics {
    registry: Mutex<Registry>,
    reconciliations: Family<Reconciliation, Counter>,
    durations: Family<Controller, Histogram, fn() -> Histogram>,
    probes: Family<Probe, Counter>,
    repairs: Family<Target, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reconciliation {
    controller: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Controller {
    controller: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Probe {
    kind: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Target {
    kind: String,
    name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabel {
    kind: String,
}

/// Counts the objects of each kind when it is asked.
type Sizes = Box<dyn Fn() -> Vec<(String, usize)> + Send + Sync>;

struct IndexSizes(Sizes);

/// Names the kinds that cannot be listed when it is asked.
type UnlistedKinds = Box<dyn Fn() -> Vec<String> + Send + Sync>;

struct Unlisted(UnlistedKinds);

/// Tells whether this process leads when it is asked.
type Leads = Box<dyn Fn() -> bool + Send + Sync>;

struct Leader(Leads);

const BUCKETS: [f64; 9] = [0.001, 0.005, 0.02, 0.1, 0.5, 1.0, 2.5, 10.0, 60.0];

// === impl Metrics ===

impl Metrics {
    /// Everything at 0.
    pub fn new() -> Self {
        let metrics = Self {
            registry: Mutex::new(Registry::with_prefix("windlass")),
            reconciliations: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            probes: Family::default(),
            repairs: Family::default(),
        };
        let mut registry = metrics.registry.lock();
        registry.register(
            "reconciliations",
            "Reconciliations by controller and outcome",
            metrics.reconciliations.clone(),
        );
        registry.register(
            "reconciliation_duration_seconds",
            "Duration of reconciliations",
            metrics.durations.clone(),
        );
        registry.register(
            "probes",
            "Handshakes and conversions attempted with endpoints",
            metrics.probes.clone(),
        );
        registry.register(
            "target_repairs",
            "Trust bundles restored in targets after another client had overwritten them",
            metrics.repairs.clone(),
        );
        drop(registry);
        metrics
    }

    /// A reconciliation has ended.
    pub fn reconciled(&self, controller: &'static str, succeeded: bool, took: Duration) {
        let labels = Reconciliation {
            controller,
            outcome: outcome(succeeded),
        };
        self.reconciliations.get_or_create(&labels).inc();
        self.durations
            .get_or_create(&Controller { controller })
            .observe(took.as_secs_f64());
    }

    /// An endpoint was dialled; `kind` is `handshake` or `conversion`.
    pub fn probed(&self, kind: &'static str, succeeded: bool) {
        self.probes
            .get_or_create(&Probe {
                kind,
                outcome: outcome(succeeded),
            })
            .inc();
    }

    /// A target was given back the trust bundle that somebody else had taken from it.
    pub fn repaired(&self, kind: &str, name: &str) {
        let labels = Target {
            kind: kind.to_owned(),
            name: name.to_owned(),
        };
        self.repairs.get_or_create(&labels).inc();
    }

    /// Reports how many objects of each kind the index holds, by asking `sizes` at each scrape.
    pub fn report_sizes(&self, sizes: impl Fn() -> Vec<(String, usize)> + Send + Sync + 'static) {
        self.registry
            .lock()
            .register_collector(Box::new(IndexSizes(Box::new(sizes))));
    }

    /// Reports the kinds of which no list was seen yet, by asking `unlisted` at each scrape.
    pub fn report_unlisted(&self, unlisted: impl Fn() -> Vec<String> + Send + Sync + 'static) {
        self.registry
            .lock()
            .register_collector(Box::new(Unlisted(Box::new(unlisted))));
    }

    /// Reports whether this process leads, by asking `leads` at each scrape.
    pub fn report_leader(&self, leads: impl Fn() -> bool + Send + Sync + 'static) {
        self.registry
            .lock()
            .register_collector(Box::new(Leader(Box::new(leads))));
    }

    /// The text that Prometheus scrapes.
    ///
    /// # Errors
    ///
    /// When a collector fails to write.
    pub fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry.lock())?;
        Ok(text)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

// === impl IndexSizes ===

impl std::fmt::Debug for IndexSizes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IndexSizes").finish_non_exhaustive()
    }
}

impl Collector for IndexSizes {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let sizes = (self.0)();
        if sizes.is_empty() {
            return Ok(());
        }
        let mut family = encoder.encode_descriptor(
            "index_objects",
            "Objects in the caches of the watches",
            None,
            MetricType::Gauge,
        )?;
        for (kind, size) in sizes {
            let gauge = ConstGauge::new(i64::try_from(size).unwrap_or(i64::MAX));
            gauge.encode(family.encode_family(&KindLabel { kind })?)?;
        }
        Ok(())
    }
}

// === impl Unlisted ===

impl std::fmt::Debug for Unlisted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unlisted").finish_non_exhaustive()
    }
}

impl Collector for Unlisted {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let kinds = (self.0)();
        if kinds.is_empty() {
            return Ok(());
        }
        let help = "1 for each kind whose objects could not be listed since this process started";
        let mut family = encoder.encode_descriptor("unlisted_kinds", help, None, MetricType::Gauge)?;
        for kind in kinds {
            ConstGauge::new(1_i64).encode(family.encode_family(&KindLabel { kind })?)?;
        }
        Ok(())
    }
}

// === impl Leader ===

impl std::fmt::Debug for Leader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Leader").finish_non_exhaustive()
    }
}

impl Collector for Leader {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let help = "1 if this process is the leader, 0 if it stands by";
        let descriptor = encoder.encode_descriptor("leader", help, None, MetricType::Gauge)?;
        ConstGauge::new(i64::from((self.0)())).encode(descriptor)
    }
}

fn outcome(succeeded: bool) -> &'static str {
    if succeeded { "success" } else { "failure" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_is_in_the_text() {
        let metrics = Metrics::new();
        metrics.reconciled("bundle-deployment", false, Duration::from_millis(3));
        metrics.probed("handshake", true);
        metrics.repaired("APIService", "v1.example.com");
        metrics.report_sizes(|| vec![("v1, Kind=Secret".to_owned(), 3)]);
        metrics.report_unlisted(|| vec!["v1, Kind=Odd".to_owned()]);
        metrics.report_leader(|| true);
        let text = metrics.text().unwrap();
        for line in [
            "windlass_reconciliations_total{controller=\"bundle-deployment\",outcome=\"failure\"} 1",
            "windlass_probes_total{kind=\"handshake\",outcome=\"success\"} 1",
            "windlass_target_repairs_total{kind=\"APIService\",name=\"v1.example.com\"} 1",
            "windlass_index_objects{kind=\"v1, Kind=Secret\"} 3",
            "windlass_unlisted_kinds{kind=\"v1, Kind=Odd\"} 1",
            "windlass_leader 1",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }
}
