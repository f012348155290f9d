//! Whether messages agree with the counts in the same plan.

use crate::rotation::{
    Assessments, Blocked, ConditionStatus, EndpointCounts, Reason, RotationPlan, conditions::ALL_WELL,
};

/// Returns a message of a plan that contradicts its counts.
pub(super) fn disagreement(plan: &RotationPlan) -> Option<String> {
    let Assessments {
        trusted,
        served,
        ready,
    } = &plan.conditions;
    let all = |counts: EndpointCounts| counts.current == counts.total;
    let figures = |counts: EndpointCounts| format!("{} of {} ", counts.current, counts.total);
    let is_blind = |problem: &Blocked| matches!(problem, Blocked::Unobservable { .. });
    let is_repaired =
        |problem: &Blocked| matches!(problem, Blocked::Contested { contested, .. } if contested.repairs < 2);
    let verdicts = [trusted, served, ready];
    let is_partial = |reason| [Reason::Updating, Reason::Unobservable].contains(&reason);
    let is_well = ready.status == ConditionStatus::True
        && all(plan.endpoints)
        && plan.endpoints.total > 0
        && all(plan.targets)
        && plan.blocked.iter().all(is_repaired);
    let rules = [
        ("all is well", ready.message != ALL_WELL || is_well),
        (
            "nothing is in progress",
            (ready.reason == Reason::Current) == (ready.message == ALL_WELL),
        ),
        (
            "all endpoints serve it",
            served.reason != Reason::Current || (all(plan.endpoints) && plan.endpoints.total > 0),
        ),
        (
            "some endpoints serve it",
            !is_partial(served.reason) || served.message.starts_with(&figures(plan.endpoints)),
        ),
        (
            "all targets carry it",
            trusted.reason != Reason::Current || all(plan.targets),
        ),
        (
            "some targets carry it",
            !is_partial(trusted.reason) || trusted.message.starts_with(&figures(plan.targets)),
        ),
        (
            "it is ready",
            ready.status != ConditionStatus::True
                || [trusted, served]
                    .iter()
                    .all(|verdict| verdict.status != ConditionStatus::False),
        ),
        (
            "it cannot be observed",
            ready.reason != Reason::Unobservable
                || served.status == ConditionStatus::Unknown
                || plan.blocked.iter().any(is_blind),
        ),
        (
            "it is updated",
            ready.reason != Reason::Updating
                || !all(plan.endpoints)
                || !all(plan.targets)
                || plan.blocked.iter().any(is_blind),
        ),
        (
            "singular and plural",
            verdicts.iter().all(|verdict| {
                let several = ["all 0 ", "all 1 ", " 1 pods"];
                several.iter().all(|words| !verdict.message.contains(words))
            }),
        ),
    ];
    let (name, _) = rules.iter().find(|(_, agrees)| !agrees)?;
    Some(format!(
        "{name}: {} of {:?}, {:?}, blocked by {:?}",
        ready.message, plan.endpoints, plan.targets, plan.blocked
    ))
}
