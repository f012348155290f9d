//! Which policies are asked about one request, how long that takes, and what it says of them.

use std::{collections::HashMap, time::Duration};

use parking_lot::Mutex;
use policy::{CompiledPolicy, EvaluationGate, FailureReason, PolicyFailure, PolicyKey};
use tokio::time::Instant;
use tracing::{info, warn};

use super::{breaker::SuspensionCause, snapshot::PolicySnapshot};

/// Lets the policies be asked about one request that are not taken out, and times them.
pub(super) struct RequestGate<'a> {
    policies: &'a PolicySnapshot,
    /// Whether there is no time left.
    is_over: &'a (dyn Fn() -> bool + Sync),
    asked: Mutex<HashMap<PolicyKey, AskedPolicy>>,
}

struct AskedPolicy {
    /// It stays so for the request, however often that is evaluated.
    is_asked: bool,
    began: Instant,
    took: Duration,
    /// Whether others had left it no time.
    is_late: bool,
}

// === impl RequestGate ===

impl<'a> RequestGate<'a> {
    /// For a request about which `policies` are asked until `is_over`.
    pub(super) fn new(policies: &'a PolicySnapshot, is_over: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self {
            policies,
            is_over,
            asked: Mutex::default(),
        }
    }

    /// How long each policy took that was asked.
    pub(super) fn durations(&self, mut told: impl FnMut(&PolicyKey, Duration)) {
        for (key, asked) in &*self.asked.lock() {
            if asked.is_asked {
                told(key, asked.took);
            }
        }
    }

    /// Notes how policies have fared that may be taken out, of which `ignored` failed. Whether one went or came back.
    pub(super) fn conclude(&self, ignored: &[PolicyFailure]) -> bool {
        let now = Instant::now();
        let mut is_news = false;
        let asked = self.asked.lock();
        for (key, asked) in asked.iter().filter(|(_, asked)| asked.is_asked) {
            let Some(state) = self.policies.suspendable(key) else {
                continue;
            };
            match ignored.iter().find(|failure| failure.policy == *key) {
                // It is no fault of a policy that others have used up the time.
                Some(failure) if asked.is_late || failure.reason == FailureReason::Deadline => {}
                Some(failure) => {
                    let cause = SuspensionCause::from(failure);
                    if state.breaker.lock().failed(cause, now) {
                        warn!(policy = %key, "Took a policy out: {cause}");
                        is_news = true;
                    }
                }
                None => {
                    if state.breaker.lock().succeeded() {
                        info!(policy = %key, "A policy that was taken out is asked again");
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
        // It may wait for others, which is no time of the policy.
        let is_late = (self.is_over)();
        let began = Instant::now();
        let mut asked = self.asked.lock();
        if let Some(asked) = asked.get_mut(policy.key()) {
            asked.began = began;
            return asked.is_asked;
        }
        let state = self.policies.suspendable(policy.key());
        let is_asked = state.is_none_or(|state| state.breaker.lock().asks(began));
        let first = AskedPolicy {
            is_asked,
            began,
            took: Duration::ZERO,
            is_late,
        };
        asked.insert(policy.key().clone(), first);
        is_asked
    }

    fn leave(&self, policy: &CompiledPolicy) {
        if let Some(asked) = self.asked.lock().get_mut(policy.key()) {
            asked.took += asked.began.elapsed();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, sync::Arc};

    use policy::{AdmissionAttributes, Answers, Engines, EvaluationBudget, PolicyEvaluation};
    use proptest::prelude::*;
    use serde_json::{Value, json};
    use windlass_object::ObjectKey;

    use super::{
        super::snapshot::{PolicyState, PolicyVersion},
        *,
    };

    /// One that fails at objects without `spec.a`.
    fn policies(failure_policy: &str) -> PolicySnapshot {
        let policy = json!({
            "apiVersion": "policy.kcloudlabs.io/v1alpha1", "kind": "ClusterOverridePolicy",
            "metadata": {"name": "a", "uid": "u", "generation": 1},
            "spec": {"failurePolicy": failure_policy, "overrideRules": [
                {"overriders": {"cel": {"expression": "object.spec.a == 1 ? [] : []"}}},
            ]},
        });
        let compiled = CompiledPolicy::compile(&policy, &Engines::built_in()).map(Arc::new);
        let key = ObjectKey::of(&policy).unwrap();
        let state = PolicyState::new(PolicyVersion::of(&policy), compiled);
        PolicySnapshot::new(BTreeMap::from([(key, Arc::new(state))]), true)
    }

    fn object(fails: bool) -> Value {
        let spec = if fails { json!({}) } else { json!({"a": 1}) };
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
    }

    /// How many policies were asked, and whether the request may go on.
    fn ask(policies: &PolicySnapshot, fails: bool, is_over: bool) -> (usize, bool) {
        let is_over = || is_over;
        let gate = RequestGate::new(policies, &is_over);
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
        gate.durations(|_, _| timed += 1);
        assert_eq!(timed, outcome.asked.len());
        (outcome.asked.len(), outcome.refusal.is_none())
    }

    #[test]
    fn a_policy_that_always_fails_is_asked_no_more_and_a_new_generation_is() {
        let known = policies("Ignore");
        let mut count = 0;
        while ask(&known, true, false) == (1, true) {
            count += 1;
            assert!(count < 1_000, "never taken out");
        }
        assert!(count > 1);
        assert_eq!(
            ask(&known, false, false),
            (0, true),
            "also where it would not fail"
        );
        assert_eq!(ask(&policies("Ignore"), false, false), (1, true));
    }

    #[test]
    fn who_is_asked_too_late_has_not_failed() {
        let known = policies("Ignore");
        for _ in 0..100 {
            assert_eq!(ask(&known, true, true), (1, true));
        }
    }

    #[test]
    fn a_request_that_is_evaluated_again_tries_the_same_policies() {
        let known = policies("Ignore");
        let gate = RequestGate::new(&known, &|| false);
        let policy = known.set.policies().next().unwrap();
        assert!(gate.enter(policy));
        gate.leave(policy);
        while ask(&known, true, false).0 == 1 {}
        assert!(gate.enter(policy), "it was let in before");
        assert!(!RequestGate::new(&known, &|| false).enter(policy));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn a_policy_that_must_not_fail_is_never_taken_out(failing in prop::collection::vec(prop::bool::weighted(0.95), 0..120)) {
            let known = policies("Fail");
            for fails in failing {
                prop_assert_eq!(ask(&known, fails, false), (1, !fails));
            }
        }
    }
}
