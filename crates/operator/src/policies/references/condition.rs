//! The condition about data that a policy refers to.

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

/// The condition that reports whether the objects that a policy refers to can be read.
const DATA_READABLE: &str = "DataReadable";

/// Returns why objects that a policy refers to cannot be read yet; `None` if they can.
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

/// Records in the status of a policy whether the objects that it refers to can be read. A policy that names
/// no kinds has no such condition.
pub(in super::super) fn record_readability(
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
    let update = match references.data_problem(policy) {
        None => ConditionUpdate::holds("Read", "the referenced objects can be read"),
        Some(problem) => ConditionUpdate::fails("NotRead", problem),
    };
    let mut conditions: Vec<_> = status.conditions.iter().filter_map(condition).collect();
    conditions.record(DATA_READABLE, update, status.observed_generation, now);
    status.conditions = conditions.into_iter().map(policy_condition).collect();
}
