//! Conditions in status.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::{BundleDeployment, ServingCertificate};

/// The condition that reports that Windlass has stopped until a user acts. GitOps tools then report a failure.
pub const STALLED: &str = "Stalled";

/// New status, reason and message of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionUpdate {
    /// `True`, `False` or `Unknown`.
    pub status: &'static str,
    /// Reason in CamelCase, for programs.
    pub reason: String,
    /// Message for people: the state and what to do next. Must not contain secrets.
    pub message: String,
}

/// Reading and writing lists of conditions.
pub trait Conditions {
    /// Returns the condition of type `condition_type`.
    fn find(&self, condition_type: &str) -> Option<&Condition>;

    /// Reports whether condition `condition_type` is `True`.
    fn holds(&self, condition_type: &str) -> bool {
        self.find(condition_type)
            .is_some_and(|condition| condition.status == "True")
    }

    /// Sets the condition [`STALLED`] to `failure`, or removes it if there is none.
    fn record_failure(&mut self, failure: Option<ConditionUpdate>, generation: Option<i64>, now: Timestamp);

    /// Sets a condition. `lastTransitionTime` changes only if the status does, so that the list stays equal
    /// if nothing changes.
    fn record(
        &mut self,
        condition_type: &str,
        verdict: ConditionUpdate,
        generation: Option<i64>,
        now: Timestamp,
    );
}

fn is_ready(generation: Option<i64>, observed: Option<i64>, conditions: &Vec<Condition>) -> bool {
    // Another condition may have been written for a newer generation than Ready.
    let is_current = |ready: &Condition| {
        ready.status == "True"
            && ready
                .observed_generation
                .is_none_or(|observed| Some(observed) == generation)
    };
    observed == generation && conditions.find("Ready").is_some_and(is_current)
}

impl BundleDeployment {
    /// Reports whether the condition Ready is `True` for the current generation.
    pub fn is_ready(&self) -> bool {
        let status = self.status.as_ref();
        status.is_some_and(|status| {
            is_ready(
                self.metadata.generation,
                status.observed_generation,
                &status.conditions,
            )
        })
    }
}

impl ServingCertificate {
    /// Reports whether the condition Ready is `True` for the current generation.
    pub fn is_ready(&self) -> bool {
        let status = self.status.as_ref();
        status.is_some_and(|status| {
            is_ready(
                self.metadata.generation,
                status.observed_generation,
                &status.conditions,
            )
        })
    }
}

/// Maximum length of a condition's message in the API server.
const MAX_MESSAGE_LENGTH: usize = 32_768;

impl ConditionUpdate {
    /// Status `True`.
    pub fn holds(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new("True", reason, message)
    }

    /// Status `False`.
    pub fn fails(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new("False", reason, message)
    }

    /// Status `Unknown`.
    pub fn unknown(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new("Unknown", reason, message)
    }

    fn new(status: &'static str, reason: impl Into<String>, message: impl Into<String>) -> Self {
        let mut message: String = message.into();
        if message.len() > MAX_MESSAGE_LENGTH {
            message = message.chars().take(MAX_MESSAGE_LENGTH / 4).collect();
        }
        Self {
            status,
            reason: reason.into(),
            message,
        }
    }
}

impl Conditions for Vec<Condition> {
    fn find(&self, condition_type: &str) -> Option<&Condition> {
        self.iter().find(|condition| condition.type_ == condition_type)
    }

    fn record_failure(&mut self, failure: Option<ConditionUpdate>, generation: Option<i64>, now: Timestamp) {
        match failure {
            Some(ConditionUpdate { reason, message, .. }) => {
                let stalled = ConditionUpdate::holds(reason, message);
                self.record(STALLED, stalled, generation, now);
            }
            None => self.retain(|condition| condition.type_ != STALLED),
        }
    }

    fn record(
        &mut self,
        condition_type: &str,
        verdict: ConditionUpdate,
        generation: Option<i64>,
        now: Timestamp,
    ) {
        let mut condition = Condition {
            type_: condition_type.to_owned(),
            status: verdict.status.to_owned(),
            reason: verdict.reason,
            message: verdict.message,
            observed_generation: generation,
            last_transition_time: Time(now),
        };
        match self.iter_mut().find(|known| known.type_ == condition_type) {
            Some(known) => {
                if known.status == condition.status {
                    condition.last_transition_time = known.last_transition_time.clone();
                }
                *known = condition;
            }
            None => self.push(condition),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn an_equal_condition_leaves_the_list_unchanged() {
        let mut conditions = Vec::new();
        conditions.record(
            "Ready",
            ConditionUpdate::fails("Waiting", "for the Deployment"),
            Some(1),
            at(1),
        );
        let before = conditions.clone();
        conditions.record(
            "Ready",
            ConditionUpdate::fails("Waiting", "for the Deployment"),
            Some(1),
            at(2),
        );
        assert_eq!(conditions, before);
    }

    #[test]
    fn the_transition_time_changes_only_with_the_status() {
        let mut conditions = Vec::new();
        conditions.record("Ready", ConditionUpdate::fails("Waiting", ""), None, at(1));
        conditions.record("Ready", ConditionUpdate::fails("Failed", ""), None, at(2));
        assert_eq!(conditions[0].last_transition_time, Time(at(1)));
        conditions.record("Ready", ConditionUpdate::holds("Done", ""), None, at(3));
        assert_eq!(conditions[0].last_transition_time, Time(at(3)));
        assert!(conditions.holds("Ready"));
    }

    #[test]
    fn a_failure_is_stalled_until_it_ends() {
        let mut conditions = Vec::new();
        let failure = ConditionUpdate::fails("ForeignObject", "delete it");
        conditions.record("Ready", failure.clone(), Some(1), at(1));
        conditions.record_failure(Some(failure), Some(1), at(1));
        let stalled = conditions.find(STALLED).unwrap();
        assert_eq!((&*stalled.status, &*stalled.reason), ("True", "ForeignObject"));
        conditions.record_failure(None, Some(1), at(2));
        assert!(conditions.find(STALLED).is_none() && conditions.find("Ready").is_some());
    }

    #[test]
    fn ready_counts_only_for_the_current_generation() {
        for (generation, observed, of_condition, status, expected) in [
            (2, Some(2), Some(2), "True", true),
            (2, Some(2), None, "True", true),
            (2, Some(2), Some(2), "False", false),
            (2, Some(1), Some(1), "True", false),
            (2, Some(2), Some(1), "True", false),
            (2, Some(-1), Some(2), "True", false),
            (2, None, Some(2), "True", false),
        ] {
            let mut conditions = Vec::new();
            let ready = ConditionUpdate::new(status, "Ready", "");
            conditions.record("Ready", ready, of_condition, at(1));
            assert_eq!(
                is_ready(Some(generation), observed, &conditions),
                expected,
                "{observed:?} {of_condition:?} {status}"
            );
        }
        assert!(!is_ready(Some(1), Some(-1), &Vec::new()));
    }
}
