//! Which policies evaluate one request, how long each takes, and whether its result suspends the policy or
//! ends a suspension.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use parking_lot::Mutex;
use policy::{CompiledPolicy, EvaluationGate, PolicyFailure, PolicyKey};
use tokio::time::Instant;
use tracing::{info, warn};

use super::{breaker::SuspensionCause, snapshot::PolicySnapshot};

/// Skips suspended policies, and measures the time of the others.
pub(super) struct RequestGate<'a> {
    policies: &'a PolicySnapshot,
    /// Reports whether the time for the request has run out. May block until another request frees a permit.
    is_over: &'a (dyn Fn() -> bool + Sync),
    evaluated: &'a EvaluatedPolicies,
    /// When the evaluation of the current policy started.
    since: Mutex<Option<Instant>>,
    /// Whether the time has run out. An earlier policy may have used it up.
    has_ended: AtomicBool,
}

/// The policies that evaluate one request, over all evaluations of that request.
#[derive(Default)]
pub(super) struct EvaluatedPolicies(Mutex<HashMap<PolicyKey, EvaluatedPolicy>>);

struct EvaluatedPolicy {
    /// Decided once per request.
    is_admitted: bool,
    took: Duration,
    /// Whether earlier policies left no time for this one.
    is_late: bool,
}

/// The longest evaluation of one policy, so that others have time left and do not fail because of it.
const LONGEST: Duration = Duration::from_secs(2);

impl<'a> RequestGate<'a> {
    /// Evaluates one request with `policies` until `is_over`.
    pub(super) fn new(
        policies: &'a PolicySnapshot,
        is_over: &'a (dyn Fn() -> bool + Sync),
        evaluated: &'a EvaluatedPolicies,
    ) -> Self {
        Self {
            policies,
            is_over,
            evaluated,
            since: Mutex::default(),
            has_ended: AtomicBool::new(false),
        }
    }

    /// Reports whether the current policy has no time left. Waiting for a permit does not count against the
    /// policy.
    pub(super) fn is_over(&self) -> bool {
        let before = Instant::now();
        let is_over = (self.is_over)();
        self.has_ended.fetch_or(is_over, Ordering::Relaxed);
        let mut since = self.since.lock();
        let Some(since) = &mut *since else {
            return is_over;
        };
        *since += before.elapsed();
        is_over || since.elapsed() >= LONGEST
    }

    /// Calls `record` with how long each evaluated policy took.
    pub(super) fn record_durations(&self, mut record: impl FnMut(&PolicyKey, Duration)) {
        for (key, evaluated) in &*self.evaluated.0.lock() {
            if evaluated.is_admitted {
                record(key, evaluated.took);
            }
        }
    }

    /// Reports whether a policy is evaluated for the request; a suspended one is not.
    pub(super) fn admits(&self, policy: &PolicyKey) -> bool {
        let evaluated = self.evaluated.0.lock();
        evaluated
            .get(policy)
            .is_none_or(|evaluated| evaluated.is_admitted)
    }

    /// Records the results of the policies that can be suspended; `ignored` are the failures. Returns whether
    /// a suspension began or ended.
    pub(super) fn conclude(&self, ignored: &[PolicyFailure]) -> bool {
        let now = Instant::now();
        let mut is_news = false;
        let evaluated = self.evaluated.0.lock();
        for (key, evaluated) in evaluated.iter().filter(|(_, evaluated)| evaluated.is_admitted) {
            let Some(state) = self.policies.suspendable(key) else {
                continue;
            };
            match ignored.iter().find(|failure| failure.policy == *key) {
                // An earlier policy used up the time.
                Some(_) if evaluated.is_late => {}
                Some(failure) => {
                    let cause = SuspensionCause::from(failure);
                    if state.breaker.lock().record_failure(cause, now) {
                        warn!(policy = %key, "Suspended a policy: {cause}");
                        is_news = true;
                    }
                }
                None => {
                    if state.breaker.lock().record_success() {
                        info!(policy = %key, "A suspended policy is evaluated again");
                        is_news = true;
                    }
                }
            }
        }
        is_news
    }
}

impl EvaluationGate for RequestGate<'_> {
    fn enter(&self, policy: &CompiledPolicy) -> bool {
        let is_late = (self.is_over)();
        let now = Instant::now();
        let mut evaluated = self.evaluated.0.lock();
        let evaluated = evaluated.entry(policy.key().clone()).or_insert_with(|| {
            let state = self.policies.suspendable(policy.key());
            EvaluatedPolicy {
                is_admitted: state.is_none_or(|state| state.breaker.lock().allows(now)),
                took: Duration::ZERO,
                is_late,
            }
        });
        *self.since.lock() = evaluated.is_admitted.then_some(now);
        evaluated.is_admitted
    }

    fn leave(&self, policy: &CompiledPolicy) {
        let took = self.since.lock().take().map(|since| since.elapsed());
        if let (Some(evaluated), Some(took)) = (self.evaluated.0.lock().get_mut(policy.key()), took) {
            evaluated.took += took;
            // The time limit may have caused the failure, whatever the policy reports.
            evaluated.is_late |= self.has_ended.load(Ordering::Relaxed) && evaluated.took < LONGEST;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeMap,
        sync::{Arc, atomic::AtomicUsize},
    };

    use policy::{
        AdmissionAttributes, Answers, Engines, EvaluationBudget, FailureReason, PolicyEvaluation, RuleStep,
        api::FailurePolicyType,
    };
    use proptest::prelude::*;
    use serde_json::{Value, json};
    use windlass_object::ObjectKey;

    use super::{
        super::snapshot::{PolicyState, PolicyVersion},
        *,
    };

    /// A policy that fails for objects without `spec.a`.
    fn policies(failure_policy: &str) -> PolicySnapshot {
        let policy = json!({
            "apiVersion": "policy.kcloudlabs.io/v1alpha1", "kind": "ClusterOverridePolicy",
            "metadata": {"name": "a", "uid": "u", "generation": 1},
            "spec": {"failurePolicy": failure_policy, "overrideRules": [
                {"overriders": {"cel": {"expression": "object.spec.a == 1 ? [] : []"}}},
            ]},
        });
        let compiled = CompiledPolicy::compile(&policy, &Engines::built_in()).map(Arc::new);
        let key = ObjectKey::from_object(&policy).unwrap();
        let state = PolicyState::new(PolicyVersion::from_object(&policy), compiled);
        PolicySnapshot::new(BTreeMap::from([(key, Arc::new(state))]), true)
    }

    fn object(fails: bool) -> Value {
        let spec = if fails { json!({}) } else { json!({"a": 1}) };
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
    }

    /// Returns how many policies were evaluated, and whether the request is allowed.
    fn evaluate(policies: &PolicySnapshot, fails: bool, is_over: bool) -> (usize, bool) {
        let is_over = || is_over;
        let evaluated = EvaluatedPolicies::default();
        let gate = RequestGate::new(policies, &is_over, &evaluated);
        let budget = EvaluationBudget {
            gate: &gate,
            ..EvaluationBudget::default()
        };
        let object = object(fails);
        let attributes = AdmissionAttributes::create(&object);
        let evaluated = policies
            .set
            .override_object(&attributes, &Answers::default(), &budget);
        let PolicyEvaluation::Done(outcome) = evaluated else {
            panic!("{evaluated:?}")
        };
        gate.conclude(&outcome.ignored);
        let mut timed = 0;
        gate.record_durations(|_, _| timed += 1);
        assert_eq!(timed, outcome.asked.len());
        (outcome.asked.len(), outcome.refusal.is_none())
    }

    #[test]
    fn a_failing_policy_is_suspended_until_its_next_generation() {
        let known = policies("Ignore");
        let mut count = 0;
        while evaluate(&known, true, false) == (1, true) {
            count += 1;
            assert!(count < 1_000, "never suspended");
        }
        assert!(count > 1);
        assert_eq!(
            evaluate(&known, false, false),
            (0, true),
            "skipped even where it would not fail"
        );
        assert_eq!(evaluate(&policies("Ignore"), false, false), (1, true));
    }

    #[test]
    fn a_policy_that_starts_too_late_has_not_failed() {
        let known = policies("Ignore");
        for _ in 0..100 {
            assert_eq!(evaluate(&known, true, true), (1, true));
        }
    }

    #[test]
    fn a_repeated_evaluation_runs_the_same_policies() {
        let known = policies("Ignore");
        let evaluated = EvaluatedPolicies::default();
        let gate = RequestGate::new(&known, &|| false, &evaluated);
        let policy = known.set.policies().next().unwrap();
        assert!(gate.enter(policy));
        gate.leave(policy);
        while evaluate(&known, true, false).0 == 1 {}
        let again = RequestGate::new(&known, &|| false, &evaluated);
        assert!(again.enter(policy), "decided at the first evaluation");
        let another = EvaluatedPolicies::default();
        assert!(!RequestGate::new(&known, &|| false, &another).enter(policy));
    }

    #[test]
    fn a_slow_policy_is_stopped_and_leaves_time_for_the_next() {
        let known = policies("Ignore");
        let evaluated = EvaluatedPolicies::default();
        let gate = RequestGate::new(&known, &|| false, &evaluated);
        let policy = known.set.policies().next().unwrap();
        assert!(gate.enter(policy) && !gate.is_over());
        *gate.since.lock() = Instant::now().checked_sub(LONGEST);
        assert!(gate.is_over());
        gate.leave(policy);
        assert!(!gate.is_over(), "no policy is running");
        assert!(gate.enter(policy) && !gate.is_over());
    }

    #[test]
    fn a_policy_stopped_because_of_others_has_not_failed() {
        let known = policies("Ignore");
        let policy = known.set.policies().next().unwrap();
        let failure = |reason| PolicyFailure {
            policy: policy.key().clone(),
            rule: Some(0),
            failure_policy: FailurePolicyType::Ignore,
            reason,
            message: "ended".to_owned(),
        };
        for number in 0..100 {
            let evaluated = EvaluatedPolicies::default();
            let calls = AtomicUsize::new(0);
            // The time runs out after the policy has started.
            let ends = || calls.fetch_add(1, Ordering::Relaxed) > 0;
            let gate = RequestGate::new(&known, &ends, &evaluated);
            assert!(gate.enter(policy), "suspended after {number}");
            assert!(gate.is_over());
            gate.leave(policy);
            gate.conclude(&[failure(FailureReason::Step(RuleStep::Cue))]);
        }
        let mut count = 0;
        loop {
            let evaluated = EvaluatedPolicies::default();
            let gate = RequestGate::new(&known, &|| false, &evaluated);
            if !gate.enter(policy) {
                break;
            }
            *gate.since.lock() = Instant::now().checked_sub(LONGEST);
            gate.leave(policy);
            gate.conclude(&[failure(FailureReason::Deadline)]);
            count += 1;
            assert!(
                count < 1_000,
                "a policy that uses all its time is never suspended"
            );
        }
    }

    #[test]
    fn waiting_for_a_permit_does_not_count_against_a_policy() {
        let known = policies("Ignore");
        let evaluated = EvaluatedPolicies::default();
        let waits = || {
            std::thread::sleep(Duration::from_millis(20));
            false
        };
        let gate = RequestGate::new(&known, &waits, &evaluated);
        let policy = known.set.policies().next().unwrap();
        assert!(gate.enter(policy));
        let nearly = LONGEST - Duration::from_millis(10);
        let before = Instant::now().checked_sub(nearly);
        *gate.since.lock() = before;
        gate.is_over();
        assert!(*gate.since.lock() >= before.map(|before| before + Duration::from_millis(20)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn a_policy_with_failure_policy_fail_is_never_suspended(failing in prop::collection::vec(prop::bool::weighted(0.95), 0..120)) {
            let known = policies("Fail");
            for fails in failing {
                prop_assert_eq!(evaluate(&known, fails, false), (1, !fails));
            }
        }
    }
}
