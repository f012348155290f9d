//! The status of policies.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use policy::{
    PolicyProblem,
    api::{PolicyCondition, PolicyStatus, RuleStatus},
};
use serde_json::Value;
use windlass_object::object;

use super::snapshot::PolicyState;
use crate::install::status::{ConditionUpdate, Conditions};

/// Whether the API server sends requests to a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArmingState<'a> {
    /// The API server sends requests to the policy.
    Done,
    /// The API server does not send requests yet; with the reason if there is one.
    Waiting(Option<&'a str>),
}

/// The condition that reports whether the templates of a policy are rendered.
const RENDERED: &str = "Rendered";

/// The condition that reports whether a policy is evaluated.
const READY: &str = "Ready";

/// The longest rendered program of a rule in the status, in bytes, so that all of them fit into one object.
const LONGEST_RENDERED: usize = 16 << 10;

/// Reads the current status. Unreadable parts are treated as absent.
pub(super) fn read(object: &Value) -> PolicyStatus {
    let status = object.get("status").cloned().unwrap_or_default();
    serde_json::from_value(status).unwrap_or_default()
}

/// Returns the new status of a policy that was compiled to `state`.
pub(super) fn updated(
    object: &Value,
    known: &PolicyStatus,
    state: &PolicyState,
    arming: ArmingState<'_>,
    now: Timestamp,
) -> PolicyStatus {
    let generation = state.version.generation;
    let rules = match &state.compiled {
        Ok(compiled) => policy::rule_statuses(compiled)
            .into_iter()
            .map(|rule| RuleStatus {
                rendered_cue: truncated(rule.rendered_cue),
                ..rule
            })
            .collect(),
        Err(_) => Vec::new(),
    };
    let mut conditions: Vec<Condition> = known.conditions.iter().filter_map(condition).collect();
    conditions.record(RENDERED, rendered_condition(object, state), generation, now);
    conditions.record(READY, ready_condition(state, arming), generation, now);
    conditions.record_failure(failure(state), generation, now);
    PolicyStatus {
        observed_generation: generation,
        conditions: conditions.into_iter().map(policy_condition).collect(),
        rules,
    }
}

fn ready_condition(state: &PolicyState, arming: ArmingState<'_>) -> ConditionUpdate {
    match (state.problems().as_slice(), state.suspension_cause(), arming) {
        ([], Some(cause), _) => ConditionUpdate::fails("Suspended", cause.to_string()),
        ([], None, ArmingState::Done) => {
            ConditionUpdate::holds("Armed", "the API server sends requests to it")
        }
        ([], None, ArmingState::Waiting(problem)) => {
            let message = problem.unwrap_or("waiting for the webhook configurations");
            ConditionUpdate::fails("Arming", message)
        }
        (problems, ..) => invalid(problems),
    }
}

/// Returns why a policy is not evaluated until a user changes it.
fn failure(state: &PolicyState) -> Option<ConditionUpdate> {
    let problems = state.problems();
    (!problems.is_empty()).then(|| invalid(&problems))
}

fn invalid(problems: &[PolicyProblem]) -> ConditionUpdate {
    ConditionUpdate::fails("Invalid", join_problems(problems))
}

fn rendered_condition(object: &Value, state: &PolicyState) -> ConditionUpdate {
    let rules = ["/spec/overrideRules", "/spec/validateRules"]
        .into_iter()
        .flat_map(|field| object::items(object, field));
    let have_template: Vec<_> = rules
        .map(|rule| {
            let is_there = |pointer| rule.pointer(pointer).is_some_and(Value::is_object);
            is_there("/overriders/template") || is_there("/template")
        })
        .collect();
    let templates = have_template.iter().filter(|has| **has).count();
    if templates == 0 {
        return ConditionUpdate::holds("NoTemplates", "the policy has no templates");
    }
    let Ok(compiled) = &state.compiled else {
        return invalid(&state.problems());
    };
    let unrendered = compiled
        .rule_states()
        .zip(have_template)
        .enumerate()
        .filter(|(_, ((rendered, _), has_template))| *has_template && rendered.is_none())
        .map(|(index, _)| index.to_string());
    let unrendered: Vec<_> = unrendered.collect();
    match unrendered.as_slice() {
        [] => ConditionUpdate::holds("Rendered", format!("{templates} templates are rendered")),
        rules => ConditionUpdate::fails(
            "NotRendered",
            format!("templates of rules {} are not rendered", rules.join(", ")),
        ),
    }
}

fn join_problems(problems: &[PolicyProblem]) -> String {
    let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
    problems.join("; ")
}

/// Truncates a program to the longest that is shown.
fn truncated(mut program: String) -> String {
    let mut end = program.len().min(LONGEST_RENDERED);
    while !program.is_char_boundary(end) {
        end -= 1;
    }
    program.truncate(end);
    program
}

/// Converts a condition; `None` if its time is invalid.
pub(super) fn condition(condition: &PolicyCondition) -> Option<Condition> {
    serde_json::from_value(serde_json::to_value(condition).ok()?).ok()
}

pub(super) fn policy_condition(condition: Condition) -> PolicyCondition {
    PolicyCondition {
        condition_type: condition.type_,
        status: condition.status,
        reason: condition.reason,
        message: condition.message,
        last_transition_time: condition.last_transition_time.0.to_string(),
        observed_generation: condition.observed_generation,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use policy::{CompiledPolicy, Engines, FailureReason, PolicyFailure, api::FailurePolicyType};
    use serde_json::json;
    use tokio::time::Instant;

    use super::{super::snapshot::PolicyVersion, *};

    fn policy(overriders: &Value) -> Value {
        json!({
            "apiVersion": "policy.kcloudlabs.io/v1alpha1", "kind": "ClusterOverridePolicy",
            "metadata": {"name": "a", "uid": "u", "generation": 3},
            "spec": {"overrideRules": [
                {"overriders": {"plaintext": [{"op": "add", "path": "/a", "value": 1}]}}, {"overriders": overriders},
            ]},
        })
    }

    fn armed_status(object: &Value, known: &PolicyStatus, second: i64) -> PolicyStatus {
        status_with(ArmingState::Done, object, known, second)
    }

    fn status_with(
        arming: ArmingState<'_>,
        object: &Value,
        known: &PolicyStatus,
        second: i64,
    ) -> PolicyStatus {
        let compiled = CompiledPolicy::compile(object, &Engines::built_in()).map(Arc::new);
        let state = PolicyState::new(PolicyVersion::from_object(object), compiled);
        let now = Timestamp::from_second(second).unwrap();
        updated(object, known, &state, arming, now)
    }

    fn condition_summary(status: &PolicyStatus) -> Vec<(&str, &str, &str)> {
        let conditions = status.conditions.iter();
        conditions
            .map(|condition| (&*condition.condition_type, &*condition.status, &*condition.reason))
            .collect()
    }

    #[test]
    fn a_valid_armed_policy_is_ready() {
        let status = armed_status(
            &policy(&json!({"plaintext": [{"op": "remove", "path": "/a"}]})),
            &PolicyStatus::default(),
            1,
        );
        assert_eq!(
            condition_summary(&status),
            [("Rendered", "True", "NoTemplates"), ("Ready", "True", "Armed")]
        );
        assert_eq!(status.observed_generation, Some(3));
        assert_eq!(status.rules, [RuleStatus::default(), RuleStatus::default()]);
    }

    #[test]
    fn a_policy_is_not_ready_before_it_is_armed() {
        let object = policy(&json!({"plaintext": [{"op": "remove", "path": "/a"}]}));
        let waiting = ArmingState::Waiting(Some("waiting for an endpoint"));
        let status = status_with(waiting, &object, &PolicyStatus::default(), 1);
        assert_eq!(condition_summary(&status)[1], ("Ready", "False", "Arming"));
        assert_eq!(status.conditions[1].message, "waiting for an endpoint");
    }

    #[test]
    fn a_suspended_policy_is_not_ready() {
        let object = policy(&json!({"plaintext": [{"op": "remove", "path": "/a"}]}));
        let compiled = CompiledPolicy::compile(&object, &Engines::built_in()).map(Arc::new);
        let state = PolicyState::new(PolicyVersion::from_object(&object), compiled);
        let failure = PolicyFailure {
            policy: state.compiled.as_ref().unwrap().key().clone(),
            rule: Some(1),
            reason: FailureReason::Reference,
            message: "a secret".to_owned(),
            failure_policy: FailurePolicyType::Ignore,
        };
        while !state
            .breaker
            .lock()
            .record_failure((&failure).into(), Instant::now())
        {}
        let now = Timestamp::from_second(1).unwrap();
        let status = updated(&object, &PolicyStatus::default(), &state, ArmingState::Done, now);
        assert_eq!(condition_summary(&status)[1], ("Ready", "False", "Suspended"));
        let message = &status.conditions[1].message;
        assert!(message.contains("rule 1: reading referenced data"), "{message}");
        assert!(!message.contains("a secret"), "{message}");
        assert!(state.breaker.lock().record_success());
        let status = updated(&object, &status, &state, ArmingState::Done, now);
        assert_eq!(condition_summary(&status)[1], ("Ready", "True", "Armed"));
    }

    #[test]
    fn a_problem_is_in_the_status_of_its_rule() {
        let object = policy(&json!({"cue": "{"}));
        let status = armed_status(&object, &PolicyStatus::default(), 1);
        assert_eq!(
            condition_summary(&status)[1..],
            [("Ready", "False", "Invalid"), ("Stalled", "True", "Invalid")]
        );
        assert_eq!(status.rules[0].error, "");
        assert!(
            status.rules[1]
                .error
                .starts_with("spec.overrideRules[1].overriders.cue"),
            "{status:?}"
        );
        let unreadable = json!({"apiVersion": "policy.kcloudlabs.io/v1alpha1", "kind": "ClusterOverridePolicy",
            "metadata": {"name": "a"}, "spec": {}});
        let status = armed_status(&unreadable, &status, 1);
        assert_eq!(condition_summary(&status)[1], ("Ready", "False", "Invalid"));
        assert!(status.rules.is_empty());
        let valid = policy(&json!({"plaintext": [{"op": "remove", "path": "/a"}]}));
        let status = armed_status(&valid, &status, 2);
        assert_eq!(
            condition_summary(&status),
            [("Rendered", "True", "NoTemplates"), ("Ready", "True", "Armed")]
        );
    }

    #[test]
    fn an_invalid_template_is_not_rendered() {
        let template = json!({"template": {
            "type": "resourcesOversell", "operation": "replace", "resourcesOversell": {"cpuFactor": "2"},
        }});
        let status = armed_status(&policy(&template), &PolicyStatus::default(), 1);
        assert_eq!(
            condition_summary(&status)[0],
            ("Rendered", "False", "NotRendered"),
            "a factor is less than 1: {status:?}"
        );
        assert!(status.conditions[0].message.contains("rules 1 "));
    }

    #[test]
    fn an_unchanged_status_stays_equal() {
        let object = policy(&json!({"plaintext": [{"op": "remove", "path": "/a"}]}));
        let first = armed_status(&object, &PolicyStatus::default(), 1);
        let stored = json!({"status": first});
        assert_eq!(armed_status(&object, &read(&stored), 2), first);
        assert_eq!(
            read(&json!({"status": {"conditions": 5}})),
            PolicyStatus::default()
        );
    }
}
