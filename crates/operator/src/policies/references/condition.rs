//! What the status of a policy says of the data that it refers to.

use jiff::Timestamp;
use policy::api::PolicyStatus;
use serde_json::Value;

use super::{
    References,
    named_kinds::named_kinds,
    watched_kinds::{KindState, WatchedKinds},
};
use crate::{
    install::status::{ConditionUpdate, Conditions},
    policies::status::{condition, policy_condition},
};

/// The condition that says whether the objects can be read that a policy refers to.
const DATA_READABLE: &str = "DataReadable";

/// What keeps a policy from what it refers to.
pub(super) fn problem(policy: &Value, kinds: &WatchedKinds) -> Option<String> {
    let problems: Vec<_> = named_kinds(policy)
        .into_iter()
        .filter_map(|kind| match kinds.state_of(&kind) {
            KindState::Synced | KindState::Doubtful | KindState::Unwatched => None,
            KindState::Waiting => Some(format!("waiting for the first list of {kind}")),
            KindState::Failing(problem) => Some(format!("cannot watch {kind}: {problem}")),
        })
        .collect();
    (!problems.is_empty()).then(|| problems.join("; "))
}

/// Says in the status of a policy whether what it refers to can be read, if it refers to objects of kinds that it names.
pub(in super::super) fn note(
    status: &mut PolicyStatus,
    policy: &Value,
    references: &References,
    now: Timestamp,
) {
    if named_kinds(policy).is_empty() {
        status
            .conditions
            .retain(|condition| condition.condition_type != DATA_READABLE);
        return;
    }
    let update = match references.problem_of(policy) {
        None => ConditionUpdate::holds("Read", "the objects are read that it refers to"),
        Some(problem) => ConditionUpdate::fails("NotRead", problem),
    };
    let mut conditions: Vec<_> = status.conditions.iter().filter_map(condition).collect();
    conditions.record(DATA_READABLE, update, status.observed_generation, now);
    status.conditions = conditions.into_iter().map(policy_condition).collect();
}
