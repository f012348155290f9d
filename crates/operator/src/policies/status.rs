//! What the status of a policy says.

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

/// Whether requests are sent to a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArmingState<'a> {
    /// They are.
    Done,
    /// Not yet; for this reason, if it is known.
    Waiting(Option<&'a str>),
}

/// The condition that says whether the templates of a policy are rendered.
const RENDERED: &str = "Rendered";

/// The condition that says whether a policy is asked.
const READY: &str = "Ready";

/// The most bytes of what a template was rendered to that are shown of each rule: all of them have to fit into one object.
const LONGEST_RENDERED: usize = 16 << 10;

/// The status that is known of a policy. What cannot be read in it is as if it were not there.
pub(super) fn known(object: &Value) -> PolicyStatus {
    let status = object.get("status").cloned().unwrap_or_default();
    serde_json::from_value(status).unwrap_or_default()
}

/// The status of a policy that was compiled to `state`.
pub(super) fn next(
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
                rendered_cue: shown(rule.rendered_cue),
                ..rule
            })
            .collect(),
        Err(_) => Vec::new(),
    };
    let mut conditions: Vec<Condition> = known.conditions.iter().filter_map(condition).collect();
    conditions.record(RENDERED, rendered(object, state), generation, now);
    conditions.record(READY, ready(state, arming), generation, now);
    PolicyStatus {
        observed_generation: generation,
        conditions: conditions.into_iter().map(policy_condition).collect(),
        rules,
    }
}

fn ready(state: &PolicyState, arming: ArmingState<'_>) -> ConditionUpdate {
    match (state.problems().as_slice(), state.suspended(), arming) {
        ([], Some(cause), _) => ConditionUpdate::fails("Suspended", cause.to_string()),
        ([], None, ArmingState::Done) => ConditionUpdate::holds("Armed", "requests are sent to it"),
        ([], None, ArmingState::Waiting(problem)) => {
            let word = problem.unwrap_or("waiting for the webhook configurations");
            ConditionUpdate::fails("Arming", word)
        }
        (problems, ..) => ConditionUpdate::fails("Invalid", joined(problems)),
    }
}

fn rendered(object: &Value, state: &PolicyState) -> ConditionUpdate {
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
        return ConditionUpdate::holds("NoTemplates", "there is nothing to render");
    }
    let Ok(compiled) = &state.compiled else {
        return ConditionUpdate::fails("Invalid", joined(&state.problems()));
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

fn joined(problems: &[PolicyProblem]) -> String {
    let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
    problems.join("; ")
}

/// As much of a program as there is room for.
fn shown(mut program: String) -> String {
    let mut end = program.len().min(LONGEST_RENDERED);
    while !program.is_char_boundary(end) {
        end -= 1;
    }
    program.truncate(end);
    program
}

/// A condition as others read it; `None` where its time is none.
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

    fn said(object: &Value, known: &PolicyStatus, second: i64) -> PolicyStatus {
        said_while(ArmingState::Done, object, known, second)
    }

    fn said_while(
        arming: ArmingState<'_>,
        object: &Value,
        known: &PolicyStatus,
        second: i64,
    ) -> PolicyStatus {
        let compiled = CompiledPolicy::compile(object, &Engines::built_in()).map(Arc::new);
        let state = PolicyState::new(PolicyVersion::of(object), compiled);
        let now = Timestamp::from_second(second).unwrap();
        next(object, known, &state, arming, now)
    }

    fn of_conditions(status: &PolicyStatus) -> Vec<(&str, &str, &str)> {
        let conditions = status.conditions.iter();
        conditions
            .map(|condition| (&*condition.condition_type, &*condition.status, &*condition.reason))
            .collect()
    }

    #[test]
    fn a_policy_that_can_be_asked_is_ready() {
        let status = said(
            &policy(&json!({"plaintext": [{"op": "remove", "path": "/a"}]})),
            &PolicyStatus::default(),
            1,
        );
        assert_eq!(
            of_conditions(&status),
            [("Rendered", "True", "NoTemplates"), ("Ready", "True", "Armed")]
        );
        assert_eq!(status.observed_generation, Some(3));
        assert_eq!(status.rules, [RuleStatus::default(), RuleStatus::default()]);
    }

    #[test]
    fn a_policy_is_not_ready_before_requests_are_sent_to_it() {
        let object = policy(&json!({"plaintext": [{"op": "remove", "path": "/a"}]}));
        let waiting = ArmingState::Waiting(Some("waiting for an endpoint"));
        let status = said_while(waiting, &object, &PolicyStatus::default(), 1);
        assert_eq!(of_conditions(&status)[1], ("Ready", "False", "Arming"));
        assert_eq!(status.conditions[1].message, "waiting for an endpoint");
    }

    #[test]
    fn a_policy_that_is_taken_out_is_not_ready_until_it_is_back() {
        let object = policy(&json!({"plaintext": [{"op": "remove", "path": "/a"}]}));
        let compiled = CompiledPolicy::compile(&object, &Engines::built_in()).map(Arc::new);
        let state = PolicyState::new(PolicyVersion::of(&object), compiled);
        let failure = PolicyFailure {
            policy: state.compiled.as_ref().unwrap().key().clone(),
            rule: Some(1),
            reason: FailureReason::Reference,
            message: "a secret".to_owned(),
            failure_policy: FailurePolicyType::Ignore,
        };
        while !state.breaker.lock().failed((&failure).into(), Instant::now()) {}
        let now = Timestamp::from_second(1).unwrap();
        let status = next(&object, &PolicyStatus::default(), &state, ArmingState::Done, now);
        assert_eq!(of_conditions(&status)[1], ("Ready", "False", "Suspended"));
        let message = &status.conditions[1].message;
        assert!(message.contains("rule 1: reading what it refers to"), "{message}");
        assert!(!message.contains("a secret"), "{message}");
        assert!(state.breaker.lock().succeeded());
        let status = next(&object, &status, &state, ArmingState::Done, now);
        assert_eq!(of_conditions(&status)[1], ("Ready", "True", "Armed"));
    }

    #[test]
    fn what_is_wrong_is_told_of_its_rule() {
        let object = policy(&json!({"cue": "{"}));
        let status = said(&object, &PolicyStatus::default(), 1);
        assert_eq!(of_conditions(&status)[1], ("Ready", "False", "Invalid"));
        assert_eq!(status.rules[0].error, "");
        assert!(
            status.rules[1]
                .error
                .starts_with("spec.overrideRules[1].overriders.cue"),
            "{status:?}"
        );
        let unreadable = json!({"apiVersion": "policy.kcloudlabs.io/v1alpha1", "kind": "ClusterOverridePolicy",
            "metadata": {"name": "a"}, "spec": {}});
        let status = said(&unreadable, &status, 1);
        assert_eq!(of_conditions(&status)[1], ("Ready", "False", "Invalid"));
        assert!(status.rules.is_empty());
    }

    #[test]
    fn a_template_without_its_program_is_not_rendered() {
        let template = json!({"template": {
            "type": "resourcesOversell", "operation": "replace", "resourcesOversell": {"cpuFactor": "2"},
        }});
        let status = said(&policy(&template), &PolicyStatus::default(), 1);
        assert_eq!(
            of_conditions(&status)[0],
            ("Rendered", "False", "NotRendered"),
            "a factor is less than 1: {status:?}"
        );
        assert!(status.conditions[0].message.contains("rules 1 "));
    }

    #[test]
    fn what_is_known_is_not_written_again() {
        let object = policy(&json!({"plaintext": [{"op": "remove", "path": "/a"}]}));
        let first = said(&object, &PolicyStatus::default(), 1);
        let stored = json!({"status": first});
        assert_eq!(said(&object, &known(&stored), 2), first);
        assert_eq!(
            known(&json!({"status": {"conditions": 5}})),
            PolicyStatus::default()
        );
    }
}
