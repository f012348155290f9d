//! Metrics of policies, with the names of kinitiras where it has them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use policy::{
    AdmissionAttributes, FailureReason, OverrideOutcome, PolicyFailure, PolicyKey, PolicyKind, RuleStep,
    ValidationOutcome, api::ValidationAction,
};
use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder},
    metrics::{
        MetricType, TypedMetric, counter::Counter, family::Family, gauge::Gauge, histogram::Histogram,
    },
    registry::Registry,
};

#[derive(Debug)]
pub(crate) struct PolicyMetrics {
    policies: Family<TypeLabels, Gauge>,
    override_matched: Family<PolicyLabels, PlainCounter>,
    overridden: Family<PolicyLabels, PlainCounter>,
    validate_matched: Family<PolicyLabels, PlainCounter>,
    rejected: Family<PolicyLabels, PlainCounter>,
    succeeded: Family<PolicyLabels, PlainCounter>,
    failed: Family<ErrorLabels, PlainCounter>,
    durations: Family<StageLabels, Histogram, fn() -> Histogram>,
    evaluations: Family<KeyLabels, Histogram, fn() -> Histogram>,
    suspended: Family<KeyLabels, Gauge>,
    unreported: Counter,
    /// The policies that could be suspended at the last update.
    suspendable: Mutex<BTreeSet<PolicyKey>>,
    /// The `resource_type` labels in use, for each policy.
    counted: Mutex<BTreeMap<PolicyKey, BTreeSet<String>>>,
}

/// A counter without the suffix `_total`, which the library would add but kinitiras does not have.
#[derive(Clone, Debug, Default)]
struct PlainCounter(Arc<AtomicU64>);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TypeLabels {
    policy_type: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PolicyLabels {
    name: String,
    resource_type: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KeyLabels {
    policy_type: &'static str,
    name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ErrorLabels {
    name: String,
    resource_type: String,
    error_type: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StageLabels {
    stage: &'static str,
    outcome: &'static str,
}

/// The prefix of the metrics that kinitiras has, too.
const PREFIX: &str = "kcloudlabs";

/// The prefix of Windlass's own metrics.
const OWN_PREFIX: &str = "windlass";

/// The maximum number of `resource_type` values for each policy, which bounds the number of series.
const RESOURCES: usize = 64;

/// The `resource_type` of all further kinds.
const OTHERS: &str = "other";

/// The values of `error_type`.
const ERRORS: [&str; 4] = [
    "unknown",
    "cue_execute_error",
    "cue_origin_error",
    "prepare_cue_params_error",
];

const BUCKETS: [f64; 10] = [0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 2.0, 8.0];

impl PolicyMetrics {
    /// Registers all metrics in `registry`, at 0.
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            policies: Family::default(),
            override_matched: Family::default(),
            overridden: Family::default(),
            validate_matched: Family::default(),
            rejected: Family::default(),
            succeeded: Family::default(),
            failed: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            evaluations: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            suspended: Family::default(),
            unreported: Counter::default(),
            suspendable: Mutex::default(),
            counted: Mutex::default(),
        };
        let known = registry.sub_registry_with_prefix(PREFIX);
        known.register(
            "policy_total_number",
            "Policies by kind",
            metrics.policies.clone(),
        );
        for (name, help, family) in [
            (
                "override_policy_matched_count",
                "Requests evaluated by an override policy",
                &metrics.override_matched,
            ),
            (
                "override_policy_override_count",
                "Requests whose object an override policy changed",
                &metrics.overridden,
            ),
            (
                "validate_policy_matched_count",
                "Requests evaluated by a validate policy",
                &metrics.validate_matched,
            ),
            (
                "validate_policy_reject_count",
                "Requests that a validate policy denied",
                &metrics.rejected,
            ),
            (
                "policy_success_count",
                "Requests that a policy evaluated without a failure",
                &metrics.succeeded,
            ),
        ] {
            known.register(name, help, family.clone());
        }
        known.register(
            "policy_error_count",
            "Requests that a policy failed to evaluate, by cause",
            metrics.failed.clone(),
        );
        let own = registry.sub_registry_with_prefix(OWN_PREFIX);
        own.register(
            "policy_review_duration_seconds",
            "Duration of answers to AdmissionReviews by stage and outcome",
            metrics.durations.clone(),
        );
        own.register(
            "policy_evaluation_duration_seconds",
            "Duration of the evaluations of each policy for one request",
            metrics.evaluations.clone(),
        );
        own.register(
            "policy_suspended",
            "Whether this process suspends a policy with failurePolicy Ignore because its evaluation kept failing",
            metrics.suspended.clone(),
        );
        own.register(
            "policy_objects_unreported",
            "Requests whose audit results are missing in reports for lack of space",
            metrics.unreported.clone(),
        );
        metrics
    }

    /// Returns the counter of requests whose audit results are missing in reports.
    pub(super) fn unreported(&self) -> Counter {
        self.unreported.clone()
    }

    /// Sets the number of policies, and removes the series of all others.
    pub(super) fn retain_policies<'p>(&self, policies: impl Iterator<Item = &'p PolicyKey>) {
        let policies: BTreeSet<_> = policies.collect();
        for kind in PolicyKind::ALL {
            let count = policies.iter().filter(|key| key.kind == kind).count();
            self.policies
                .get_or_create(&TypeLabels {
                    policy_type: kind.name(),
                })
                .set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        self.counted.lock().retain(|key, resources| {
            let is_there = policies.contains(key);
            if !is_there {
                resources.iter().for_each(|resource| self.forget(key, resource));
                self.evaluations.remove(&key_labels(key));
            }
            is_there
        });
    }

    /// Records the result of override policies for a request.
    pub(super) fn record_override(&self, attributes: &AdmissionAttributes<'_>, outcome: &OverrideOutcome) {
        let changed: BTreeSet<_> = outcome.steps.iter().map(|step| &step.policy).collect();
        let failures = || outcome.ignored.iter().chain(&outcome.refusal);
        for key in &outcome.asked {
            let labels = self.labels(key, attributes);
            self.override_matched.get_or_create(&labels).add();
            if changed.contains(key) {
                self.overridden.get_or_create(&labels).add();
            }
            if failures().all(|failure| failure.policy != *key) {
                self.succeeded.get_or_create(&labels).add();
            }
        }
        failures().for_each(|failure| self.record_failure(attributes, failure));
    }

    /// Records the result of validate policies for a request.
    pub(super) fn record_validation(
        &self,
        attributes: &AdmissionAttributes<'_>,
        outcome: &ValidationOutcome,
    ) {
        let rejecting: BTreeSet<_> = outcome
            .findings_with(ValidationAction::Deny)
            .map(|finding| &finding.policy)
            .collect();
        let failures = || outcome.ignored.iter().chain(&outcome.refusals);
        for key in &outcome.asked {
            let labels = self.labels(key, attributes);
            self.validate_matched.get_or_create(&labels).add();
            if rejecting.contains(key) {
                self.rejected.get_or_create(&labels).add();
            }
            if failures().all(|failure| failure.policy != *key) {
                self.succeeded.get_or_create(&labels).add();
            }
        }
        failures().for_each(|failure| self.record_failure(attributes, failure));
    }

    /// Records how long an answer took. `is_review` is false for an HTTP error.
    pub(super) fn record_answer(&self, stage: &'static str, is_review: bool, took: Duration) {
        let outcome = if is_review { "success" } else { "failure" };
        self.durations
            .get_or_create(&StageLabels { stage, outcome })
            .observe(took.as_secs_f64());
    }

    /// Records how long a policy took for a request.
    pub(super) fn record_evaluation(&self, policy: &PolicyKey, took: Duration) {
        // The entry lets a later update remove the series of a deleted policy.
        self.counted.lock().entry(policy.clone()).or_default();
        self.evaluations
            .get_or_create(&key_labels(policy))
            .observe(took.as_secs_f64());
    }

    /// Records which of the policies that can be suspended are suspended.
    pub(super) fn set_suspended<'p>(&self, policies: impl Iterator<Item = (&'p PolicyKey, bool)>) {
        let mut known = self.suspendable.lock();
        let mut current = BTreeSet::new();
        for (key, is_suspended) in policies {
            self.suspended
                .get_or_create(&key_labels(key))
                .set(is_suspended.into());
            current.insert(key.clone());
        }
        for gone in known.difference(&current) {
            self.suspended.remove(&key_labels(gone));
        }
        *known = current;
    }

    fn record_failure(&self, attributes: &AdmissionAttributes<'_>, failure: &PolicyFailure) {
        let PolicyLabels { name, resource_type } = self.labels(&failure.policy, attributes);
        let [unknown, program, origin, reference] = ERRORS;
        let error_type = match failure.reason {
            FailureReason::Step(RuleStep::RenderedCue | RuleStep::Cue | RuleStep::Cel) => program,
            FailureReason::Step(RuleStep::Origin) => origin,
            FailureReason::Reference => reference,
            _ => unknown,
        };
        self.failed
            .get_or_create(&ErrorLabels {
                name,
                resource_type,
                error_type,
            })
            .add();
    }

    fn labels(&self, key: &PolicyKey, attributes: &AdmissionAttributes<'_>) -> PolicyLabels {
        let (api_version, kind) = attributes.kind();
        let mut resource = format!("{api_version}/{kind}");
        let mut counted = self.counted.lock();
        let resources = counted.entry(key.clone()).or_default();
        if !resources.contains(&resource) {
            if resources.len() >= RESOURCES {
                OTHERS.clone_into(&mut resource);
            }
            resources.insert(resource.clone());
        }
        labels(key, &resource)
    }

    fn forget(&self, key: &PolicyKey, resource: &str) {
        let labels = labels(key, resource);
        for family in [
            &self.override_matched,
            &self.overridden,
            &self.validate_matched,
            &self.rejected,
            &self.succeeded,
        ] {
            family.remove(&labels);
        }
        for error_type in ERRORS {
            self.failed.remove(&ErrorLabels {
                name: labels.name.clone(),
                resource_type: labels.resource_type.clone(),
                error_type,
            });
        }
    }
}

fn labels(key: &PolicyKey, resource: &str) -> PolicyLabels {
    PolicyLabels {
        name: name(key),
        resource_type: resource.to_owned(),
    }
}

fn key_labels(key: &PolicyKey) -> KeyLabels {
    KeyLabels {
        policy_type: key.kind.name(),
        name: name(key),
    }
}

fn name(key: &PolicyKey) -> String {
    match key.namespace.as_str() {
        "" => key.name.clone(),
        namespace => format!("{namespace}/{}", key.name),
    }
}

impl PlainCounter {
    fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl TypedMetric for PlainCounter {
    const TYPE: MetricType = MetricType::Unknown;
}

impl EncodeMetric for PlainCounter {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        encoder.encode_gauge(&self.0.load(Ordering::Relaxed))
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

#[cfg(test)]
mod tests {
    use policy::{Answers, CompiledPolicy, Engines, EvaluationBudget, PolicyEvaluation, PolicySet};
    use prometheus_client::encoding::text::encode;
    use serde_json::{Value, json};

    use super::*;

    fn text(registry: &Registry) -> String {
        let mut text = String::new();
        encode(&mut text, registry).unwrap();
        text
    }

    fn policies() -> PolicySet {
        let policy = |name: &str, overriders: Value| {
            let policy = json!({
                "apiVersion": "policy.kcloudlabs.io/v1alpha1", "kind": "ClusterOverridePolicy",
                "metadata": {"name": name},
                "spec": {"failurePolicy": "Ignore", "overrideRules": [{"overriders": overriders}]},
            });
            Arc::new(CompiledPolicy::compile(&policy, &Engines::built_in()).unwrap())
        };
        let plaintext = json!({"plaintext": [{"op": "add", "path": "/data/a", "value": "b"}]});
        PolicySet::new([
            policy("changes", plaintext),
            policy("fails", json!({"cue": "patches: [1 / 0]"})),
        ])
    }

    fn override_object(metrics: &PolicyMetrics, set: &PolicySet, kind: &str) {
        let object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "c"}});
        let attributes = AdmissionAttributes::create(&object);
        let evaluated = set.override_object(&attributes, &Answers::default(), &EvaluationBudget::default());
        let PolicyEvaluation::Done(outcome) = evaluated else {
            panic!("{evaluated:?}")
        };
        metrics.record_override(&attributes, &outcome);
    }

    #[test]
    fn metrics_have_the_names_of_kinitiras() {
        let mut registry = Registry::default();
        let metrics = PolicyMetrics::register(&mut registry);
        let set = policies();
        metrics.retain_policies(set.policies().map(|policy| policy.key()));
        override_object(&metrics, &set, "ConfigMap");
        metrics.record_answer("mutate", true, Duration::from_millis(2));
        for policy in set.policies() {
            metrics.record_evaluation(policy.key(), Duration::from_millis(1));
            metrics.set_suspended([(policy.key(), true)].into_iter());
        }
        let current = text(&registry);
        for line in [
            r#"kcloudlabs_policy_total_number{policy_type="ClusterOverridePolicy"} 2"#,
            r#"kcloudlabs_override_policy_matched_count{name="changes",resource_type="v1/ConfigMap"} 1"#,
            r#"kcloudlabs_override_policy_override_count{name="changes",resource_type="v1/ConfigMap"} 1"#,
            r#"kcloudlabs_policy_success_count{name="changes",resource_type="v1/ConfigMap"} 1"#,
            r#"kcloudlabs_policy_error_count{name="fails",resource_type="v1/ConfigMap",error_type="cue_execute_error"} 1"#,
            r#"windlass_policy_review_duration_seconds_count{stage="mutate",outcome="success"} 1"#,
            r#"windlass_policy_evaluation_duration_seconds_count{policy_type="ClusterOverridePolicy",name="changes"} 1"#,
            r#"windlass_policy_suspended{policy_type="ClusterOverridePolicy",name="fails"} 1"#,
        ] {
            assert!(
                current.lines().any(|current| current == line),
                "{line} in {current}"
            );
        }
        assert!(!current.contains(r#"override_count{name="fails""#), "{current}");
        assert_eq!(current.matches("policy_suspended{").count(), 1, "{current}");
        metrics.retain_policies(std::iter::empty());
        metrics.set_suspended(std::iter::empty());
        let current = text(&registry);
        assert!(
            !current.contains("changes") && !current.contains("fails"),
            "{current}"
        );
    }

    #[test]
    fn the_number_of_series_is_bounded() {
        let mut registry = Registry::default();
        let metrics = PolicyMetrics::register(&mut registry);
        let set = policies();
        for index in 0..RESOURCES + 10 {
            override_object(&metrics, &set, &format!("Kind{index}"));
        }
        let count = |current: &str| current.matches(r#"matched_count{name="changes""#).count();
        let current = text(&registry);
        assert_eq!(count(&current), RESOURCES + 1, "{current}");
        assert!(current.contains(r#"matched_count{name="changes",resource_type="other"} 10"#));
        metrics.retain_policies(std::iter::empty());
        let current = text(&registry);
        assert!(
            !current.contains("changes") && !current.contains("fails"),
            "{current}"
        );
    }
}
