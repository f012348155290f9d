//! Evaluates override policies.

use serde_json::Value;

use super::{
    failure::{FailureReason, PolicyFailure, RuleStop},
    policy_set::PolicyEvaluation,
    subject::RuleSubject,
};
use crate::{
    AdmissionAttributes, AdmissionOperation, Answers, CompiledPolicy, EvaluationBudget, PolicyKey,
    api::FailurePolicyType,
    compiled::{CompiledRule, RuleStep, StepAction},
    origin,
    patch::{self, JsonPatch, JsonPatchOperation},
};

/// The outcome of override policies.
#[derive(Clone, Debug, PartialEq)]
pub struct OverrideOutcome {
    /// The patch (RFC 6902) from the original to the resulting object; empty if the request is refused.
    pub patch: JsonPatch,
    /// The resulting object.
    pub object: Value,
    /// The steps that changed the object, in order.
    pub steps: Vec<AppliedStep>,
    /// The evaluated policies, in order.
    pub asked: Vec<PolicyKey>,
    /// Failures of policies with failure policy `Ignore`.
    pub ignored: Vec<PolicyFailure>,
    /// The failure for which the request is refused.
    pub refusal: Option<PolicyFailure>,
}

/// A step of a rule that changed an object.
#[derive(Clone, Debug, PartialEq)]
pub struct AppliedStep {
    /// Key of the policy.
    pub policy: PolicyKey,
    /// The index of the rule.
    pub rule: usize,
    /// Which step of the rule.
    pub step: RuleStep,
    /// Operations of the step.
    pub patch: JsonPatch,
}

/// Evaluates policies in order, each on the result of the previous one. A policy that fails and may be
/// ignored has no effect.
pub(super) fn override_object<'p>(
    policies: impl Iterator<Item = Result<&'p CompiledPolicy, PolicyFailure>>,
    attributes: &AdmissionAttributes<'_>,
    answers: &Answers,
    budget: &EvaluationBudget<'_>,
) -> PolicyEvaluation<OverrideOutcome> {
    let mut outcome = OverrideOutcome {
        patch: JsonPatch::new(),
        object: Value::Null,
        steps: Vec::new(),
        asked: Vec::new(),
        ignored: Vec::new(),
        refusal: None,
    };
    if attributes.operation == AdmissionOperation::Delete {
        attributes.subject().clone_into(&mut outcome.object);
        return PolicyEvaluation::Done(outcome);
    }
    let mut subject = RuleSubject::new(attributes);
    for policy in policies {
        let failure = match policy {
            Ok(policy) => {
                if !budget.gate.enter(policy) {
                    continue;
                }
                outcome.asked.push(policy.key.clone());
                let asked = evaluate_policy(
                    policy,
                    attributes.operation,
                    &mut subject,
                    answers,
                    budget,
                    &mut outcome.steps,
                );
                budget.gate.leave(policy);
                match asked {
                    Ok(()) => continue,
                    Err((_, RuleStop::Missing(missing))) => return PolicyEvaluation::Missing(missing),
                    Err((rule, RuleStop::Failed(reason, message))) => {
                        PolicyFailure::new(policy, rule, reason, message)
                    }
                }
            }
            Err(failure) => failure,
        };
        if failure.failure_policy == FailurePolicyType::Fail {
            outcome.refusal = Some(failure);
            break;
        }
        outcome.ignored.push(failure);
    }
    outcome.object = subject.into_object();
    if outcome.refusal.is_none() {
        outcome.patch = patch::difference(attributes.subject(), &outcome.object);
    }
    PolicyEvaluation::Done(outcome)
}

/// Evaluates a policy. It has no effect if it fails.
fn evaluate_policy(
    policy: &CompiledPolicy,
    operation: AdmissionOperation,
    subject: &mut RuleSubject<'_>,
    answers: &Answers,
    budget: &EvaluationBudget<'_>,
    steps: &mut Vec<AppliedStep>,
) -> Result<(), (Option<usize>, RuleStop)> {
    let of_policy = |stop| (None, stop);
    if let Some(problem) = policy.outer_problem() {
        return Err(of_policy(RuleStop::Failed(
            FailureReason::Policy,
            problem.to_string(),
        )));
    }
    if !subject.meets_conditions(policy, budget).map_err(of_policy)? {
        return Ok(());
    }
    let may_be_ignored = policy.failure_policy == FailurePolicyType::Ignore;
    let before = may_be_ignored.then(|| subject.object().clone());
    let known = steps.len();
    for (index, rule) in policy.compiled_rules().iter().enumerate() {
        if !operation.is_among(&rule.operations) {
            continue;
        }
        let note = |step, patch| {
            steps.push(AppliedStep {
                policy: policy.key.clone(),
                rule: index,
                step,
                patch,
            });
        };
        if let Err(stop) = apply(rule, subject, answers, budget, note) {
            if let Some(before) = before {
                *subject.object_mut() = before;
                steps.truncate(known);
            }
            return Err((Some(index), stop));
        }
    }
    Ok(())
}

/// Applies the steps of a rule.
fn apply(
    rule: &CompiledRule,
    subject: &mut RuleSubject<'_>,
    answers: &Answers,
    budget: &EvaluationBudget<'_>,
    mut note: impl FnMut(RuleStep, JsonPatch),
) -> Result<(), RuleStop> {
    if let Some(problem) = rule.problems.first() {
        return Err(RuleStop::Failed(FailureReason::Policy, problem.to_string()));
    }
    subject.resolve(rule, answers)?;
    for (step, action) in &rule.steps {
        let failed = |message| RuleStop::Failed(FailureReason::Step(*step), message);
        if (budget.is_over)() {
            return Err(RuleStop::Failed(
                FailureReason::Deadline,
                "the time for the request has run out".into(),
            ));
        }
        match action {
            StepAction::Program(program, inputs) => {
                let given = subject.run(*step, &**program, inputs, answers, budget)?;
                let patch = JsonPatchOperation::read(&given).map_err(|error| failed(error.to_string()))?;
                change(subject, patch, *step, &mut note)?;
            }
            // Each step gets the result of the previous one.
            StepAction::Origin(overriders) => {
                for (index, overrider) in overriders.iter().enumerate() {
                    let patch = origin::apply(overrider, subject.object())
                        .map_err(|error| failed(format!("origin[{index}]: {error}")))?;
                    change(subject, patch, *step, &mut note)?;
                }
            }
            StepAction::Plaintext(patch) => change(subject, patch.clone(), *step, &mut note)?,
        }
    }
    Ok(())
}

fn change(
    subject: &mut RuleSubject<'_>,
    patch: JsonPatch,
    step: RuleStep,
    note: &mut impl FnMut(RuleStep, JsonPatch),
) -> Result<(), RuleStop> {
    if patch.is_empty() {
        return Ok(());
    }
    patch::apply(subject.object_mut(), &patch)
        .map_err(|error| RuleStop::Failed(FailureReason::Step(step), error.to_string()))?;
    note(step, patch);
    Ok(())
}
