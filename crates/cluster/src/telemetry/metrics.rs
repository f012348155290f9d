//! Prometheus metrics of the operator.

use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, text::encode},
    metrics::{MetricType, counter::Counter, family::Family, gauge::ConstGauge, histogram::Histogram},
    registry::Registry,
};
use windlass_object::ObjectKey;

/// The metrics of the process and its controllers.
#[derive(Debug)]
pub struct Metrics {
    registry: Mutex<Registry>,
    reconciliations: Family<Reconciliation, Counter>,
    durations: Family<Controller, Histogram, fn() -> Histogram>,
    probes: Family<Probe, Counter>,
    repairs: Family<Target, Counter>,
    discoveries: Family<Discovery, Counter>,
    interpretations: Family<InterpreterCall, Counter>,
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
struct Discovery {
    extension_config: String,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InterpreterCall {
    configuration: String,
    outcome: &'static str,
}

/// The value of a gauge for a set of labels, read at each scrape.
pub type Reading = (Vec<(&'static str, String)>, i64);

/// Gauges that are read at each scrape.
struct Reported {
    name: &'static str,
    help: &'static str,
    read: Box<dyn Fn() -> Vec<Reading> + Send + Sync>,
}

/// The prefix of metric names, except those with an established name.
const PREFIX: &str = "windlass";

const BUCKETS: [f64; 9] = [0.001, 0.005, 0.02, 0.1, 0.5, 1.0, 2.5, 10.0, 60.0];

impl Metrics {
    /// Creates metrics with all counters at 0.
    pub fn new() -> Self {
        let metrics = Self {
            registry: Mutex::default(),
            reconciliations: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            probes: Family::default(),
            repairs: Family::default(),
            discoveries: Family::default(),
            interpretations: Family::default(),
        };
        let mut all = metrics.registry.lock();
        all.register(
            "capi_runtime_sdk_discoveries",
            "Discoveries of each ExtensionConfig by result",
            metrics.discoveries.clone(),
        );
        let registry = all.sub_registry_with_prefix(PREFIX);
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
        registry.register(
            "interpreter_calls",
            "Calls of interpreter webhooks by ResourceInterpreterWebhookConfiguration and outcome",
            metrics.interpretations.clone(),
        );
        drop(all);
        metrics
    }

    /// Records the end of a reconciliation.
    pub fn record_reconciliation(&self, controller: &'static str, succeeded: bool, took: Duration) {
        let labels = Reconciliation {
            controller,
            outcome: outcome(succeeded),
        };
        self.reconciliations.get_or_create(&labels).inc();
        self.durations
            .get_or_create(&Controller { controller })
            .observe(took.as_secs_f64());
    }

    /// Records a probe of an endpoint; `kind` is `handshake` or `conversion`.
    pub fn record_probe(&self, kind: &'static str, succeeded: bool) {
        self.probes
            .get_or_create(&Probe {
                kind,
                outcome: outcome(succeeded),
            })
            .inc();
    }

    /// Records the repair of a target's trust bundle after a change by another client.
    pub fn record_repair(&self, target: &ObjectKey) {
        let labels = Target {
            kind: format!("{}{}", target.kind, target.cluster),
            name: target.name.clone(),
        };
        self.repairs.get_or_create(&labels).inc();
    }

    /// Records a discovery of an ExtensionConfig's server, in the metric that `runtime_hooks` defines.
    pub fn record_discovery(&self, extension_config: &str, succeeded: bool) {
        let labels = Discovery::new(extension_config, succeeded);
        self.discoveries.get_or_create(&labels).inc();
    }

    /// Removes the series of a deleted ExtensionConfig.
    pub fn forget_discoveries(&self, extension_config: &str) {
        for succeeded in [true, false] {
            self.discoveries
                .remove(&Discovery::new(extension_config, succeeded));
        }
    }

    /// Records a call of a ResourceInterpreterWebhookConfiguration's webhook.
    pub fn record_interpretation(&self, configuration: &str, succeeded: bool) {
        let labels = InterpreterCall::new(configuration, succeeded);
        self.interpretations.get_or_create(&labels).inc();
    }

    /// Removes the series of a deleted ResourceInterpreterWebhookConfiguration.
    pub fn forget_interpreter(&self, configuration: &str) {
        for succeeded in [true, false] {
            self.interpretations
                .remove(&InterpreterCall::new(configuration, succeeded));
        }
    }

    /// Registers a gauge whose values `read` returns at each scrape.
    pub fn report(
        &self,
        name: &'static str,
        help: &'static str,
        read: impl Fn() -> Vec<Reading> + Send + Sync + 'static,
    ) {
        let read = Box::new(read);
        self.registry
            .lock()
            .sub_registry_with_prefix(PREFIX)
            .register_collector(Box::new(Reported { name, help, read }));
    }

    /// Registers metrics of other components.
    pub fn extend<T>(&self, register: impl FnOnce(&mut Registry) -> T) -> T {
        register(&mut self.registry.lock())
    }

    /// Returns the text format that Prometheus scrapes.
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

impl InterpreterCall {
    fn new(configuration: &str, succeeded: bool) -> Self {
        Self {
            configuration: configuration.to_owned(),
            outcome: outcome(succeeded),
        }
    }
}

impl Discovery {
    fn new(extension_config: &str, succeeded: bool) -> Self {
        Self {
            extension_config: extension_config.to_owned(),
            result: if succeeded { "Success" } else { "Failure" },
        }
    }
}

impl std::fmt::Debug for Reported {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reported")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Collector for Reported {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let readings = (self.read)();
        if readings.is_empty() {
            return Ok(());
        }
        let mut family = encoder.encode_descriptor(self.name, self.help, None, MetricType::Gauge)?;
        if let [(labels, value)] = readings.as_slice()
            && labels.is_empty()
        {
            return ConstGauge::new(*value).encode(family);
        }
        for (labels, value) in readings {
            ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

fn outcome(succeeded: bool) -> &'static str {
    if succeeded { "success" } else { "failure" }
}

#[cfg(test)]
mod tests {
    use windlass_object::InCluster;

    use super::*;
    use crate::kind::kinds;

    #[test]
    fn the_text_contains_all_metrics() {
        let metrics = Metrics::new();
        metrics.record_reconciliation("bundle-deployment", false, Duration::from_millis(3));
        metrics.record_probe("handshake", true);
        let service = kinds::API_SERVICE.object(None, "v1.example.com");
        metrics.record_repair(&service);
        metrics.record_repair(&service.in_cluster(InCluster::Remote));
        metrics.record_discovery("hooks", false);
        metrics.record_interpretation("widgets", true);
        metrics.record_interpretation("gone", true);
        metrics.forget_interpreter("gone");
        let of = |kind: &str, value| (vec![("kind", kind.to_owned())], value);
        metrics.report("index_objects", "Objects", move || {
            vec![of("v1, Kind=Secret", 3), of("v1, Kind=Pod", 0)]
        });
        metrics.report("unlisted_kinds", "Kinds", Vec::new);
        metrics.report("leader", "Whether", || vec![(Vec::new(), 1)]);
        let text = metrics.text().unwrap();
        for line in [
            "windlass_reconciliations_total{controller=\"bundle-deployment\",outcome=\"failure\"} 1",
            "windlass_probes_total{kind=\"handshake\",outcome=\"success\"} 1",
            "windlass_target_repairs_total{kind=\"APIService\",name=\"v1.example.com\"} 1",
            "windlass_target_repairs_total{kind=\"APIService in the remote cluster\",name=\"v1.example.com\"} 1",
            "windlass_index_objects{kind=\"v1, Kind=Secret\"} 3",
            "windlass_index_objects{kind=\"v1, Kind=Pod\"} 0",
            "windlass_leader 1",
            "windlass_interpreter_calls_total{configuration=\"widgets\",outcome=\"success\"} 1",
            "\ncapi_runtime_sdk_discoveries_total{extension_config=\"hooks\",result=\"Failure\"} 1",
        ] {
            assert!(text.contains(line), "{text}");
        }
        assert!(
            !text.contains("unlisted_kinds") && !text.contains("gone"),
            "{text}"
        );
    }

    #[test]
    fn series_of_deleted_extension_configs_are_removed() {
        let metrics = Metrics::new();
        for name in ["first", "second"] {
            metrics.record_discovery(name, true);
            metrics.record_discovery(name, false);
        }
        metrics.forget_discoveries("first");
        let text = metrics.text().unwrap();
        let counts = |name: &str| text.matches(&format!("extension_config=\"{name}\"")).count();
        assert_eq!([counts("first"), counts("second")], [0, 2], "{text}");
    }
}
