//! Conditions in status: what holds, since when, and what to do next.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::{BundleDeployment, ServingCertificate};

/// What a controller found about one condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionUpdate {
    /// `True`, `False` or, where it cannot be said, `Unknown`.
    pub status: &'static str,
    /// One word in CamelCase, for programs.
    pub reason: String,
    /// What is and what to do next, for people. Never holds anything secret.
    pub message: String,
}

/// Reading and writing lists of conditions.
pub trait Conditions {
    /// Condition `condition_type`.
    fn find(&self, condition_type: &str) -> Option<&Condition>;

    /// Whether condition `condition_type` is `True`.
    fn holds(&self, condition_type: &str) -> bool {
        self.find(condition_type)
            .is_some_and(|condition| condition.status == "True")
    }

    /// Sets a condition. `lastTransitionTime` moves only when the status does, so that an unchanged verdict leaves
    /// the list as it is.
    fn record(
        &mut self,
        condition_type: &str,
        verdict: ConditionUpdate,
        generation: Option<i64>,
        now: Timestamp,
    );
}

/// Whether the last thing that was said of an object, and of its present `generation`, is that it is ready.
fn is_ready(generation: Option<i64>, observed: Option<i64>, conditions: &Vec<Condition>) -> bool {
    observed == generation && conditions.holds("Ready")
}

// === impl BundleDeployment ===

impl BundleDeployment {
    /// Whether the last thing that the operator said of it, and of its present generation, is that it is ready.
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

// === impl ServingCertificate ===

impl ServingCertificate {
    /// Whether the last thing that the operator said of it, and of its present generation, is that it is ready.
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

// === impl ConditionUpdate ===

/// What the API server lets a message be.
const LONGEST_MESSAGE: usize = 32_768;

impl ConditionUpdate {
    /// The condition holds.
    pub fn holds(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new("True", reason, message)
    }

    /// The condition does not hold.
    pub fn fails(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new("False", reason, message)
    }

    /// It cannot be said whether the condition holds.
    pub fn unknown(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new("Unknown", reason, message)
    }

    fn new(status: &'static str, reason: impl Into<String>, message: impl Into<String>) -> Self {
        let mut message: String = message.into();
        if message.len() > LONGEST_MESSAGE {
            message = message.chars().take(LONGEST_MESSAGE / 4).collect();
        }
        Self {
            status,
            reason: reason.into(),
            message,
        }
    }
}

// === impl Conditions ===

impl Conditions for Vec<Condition> {
    fn find(&self, condition_type: &str) -> Option<&Condition> {
        self.iter().find(|condition| condition.type_ == condition_type)
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
    fn an_unchanged_verdict_changes_nothing() {
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
    fn the_time_moves_with_the_status() {
        let mut conditions = Vec::new();
        conditions.record("Ready", ConditionUpdate::fails("Waiting", ""), None, at(1));
        conditions.record("Ready", ConditionUpdate::fails("Failed", ""), None, at(2));
        assert_eq!(conditions[0].last_transition_time, Time(at(1)));
        conditions.record("Ready", ConditionUpdate::holds("Done", ""), None, at(3));
        assert_eq!(conditions[0].last_transition_time, Time(at(3)));
        assert!(conditions.holds("Ready"));
    }
}
