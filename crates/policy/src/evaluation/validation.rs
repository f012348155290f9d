//! Evaluates validate policies.

use serde_json::Value;

use super::{
    failure::{FailureReason, PolicyFailure, RuleStop},
    policy_set::PolicyEvaluation,
    subject::RuleSubject,
};
use crate::{
    AdmissionAttributes, AdmissionOperation, Answers, CompiledPolicy, DataReference, EvaluationBudget,
    PolicyKey,
    api::{FailurePolicyType, ValidationAction},
    compiled::{CompiledRule, PolicyRules, RuleStep, StepAction},
};

/// The outcome of validate policies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValidationOutcome {
    /// The findings, in the order of policies and rules.
    pub findings: Vec<PolicyFinding>,
    /// The evaluated policies, in order.
    pub asked: Vec<PolicyKey>,
    /// Failures of policies with failure policy `Ignore`.
    pub ignored: Vec<PolicyFailure>,
    /// The failures for which the request is refused.
    pub refusals: Vec<PolicyFailure>,
}

/// A violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyFinding {
    /// Key of the policy.
    pub policy: PolicyKey,
    /// The index of the rule.
    pub rule: usize,
    /// Which step of the rule.
    pub step: RuleStep,
    /// Message of the rule for the user.
    pub reason: String,
    /// The actions of the policy.
    pub actions: Vec<ValidationAction>,
}

impl ValidationOutcome {
    /// Reports whether the request is admitted.
    pub fn is_allowed(&self) -> bool {
        self.refusals.is_empty() && self.findings_with(ValidationAction::Deny).next().is_none()
    }

    /// Returns the findings with this action.
    pub fn findings_with(&self, action: ValidationAction) -> impl Iterator<Item = &PolicyFinding> {
        let has = move |finding: &&PolicyFinding| finding.actions.contains(&action);
        self.findings.iter().filter(has)
    }

    /// Returns the message of a refusal: all reasons, in order. A single reason is not prefixed.
    pub fn message(&self) -> Option<String> {
        let denials: Vec<_> = self.findings_with(ValidationAction::Deny).collect();
        if let ([denial], []) = (denials.as_slice(), self.refusals.as_slice()) {
            return Some(denial.reason.clone());
        }
        let denials = denials
            .iter()
            .map(|denial| format!("{} ({})", denial.reason, denial.policy));
        let failures = self.refusals.iter().map(ToString::to_string);
        let reasons: Vec<_> = denials.chain(failures).collect();
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }

    /// Returns the warnings for the client.
    pub fn warnings(&self) -> Vec<String> {
        self.findings_with(ValidationAction::Warn)
            .map(|finding| format!("{}: {}", finding.policy, finding.reason))
            .collect()
    }
}

/// Evaluates all policies on the same object, so that all references to fetch are known at once.
pub(super) fn validate<'p>(
    policies: impl Iterator<Item = Result<&'p CompiledPolicy, PolicyFailure>>,
    attributes: &AdmissionAttributes<'_>,
    answers: &Answers,
    budget: &EvaluationBudget<'_>,
) -> PolicyEvaluation<ValidationOutcome> {
    let mut outcome = ValidationOutcome::default();
    let mut missing = Vec::new();
    let mut subject = RuleSubject::new(attributes);
    for policy in policies {
        let policy = match policy {
            Ok(policy) => policy,
            Err(failure) => {
                let refuses = failure.failure_policy == FailurePolicyType::Fail;
                outcome.note(failure, refuses);
                continue;
            }
        };
        if !budget.gate.enter(policy) {
            continue;
        }
        outcome.asked.push(policy.key.clone());
        outcome.evaluate_policy(
            policy,
            attributes.operation,
            &mut subject,
            answers,
            budget,
            &mut missing,
        );
        budget.gate.leave(policy);
    }
    if missing.is_empty() {
        PolicyEvaluation::Done(outcome)
    } else {
        PolicyEvaluation::Missing(missing)
    }
}

impl ValidationOutcome {
    /// Evaluates a policy and adds its findings.
    fn evaluate_policy(
        &mut self,
        policy: &CompiledPolicy,
        operation: AdmissionOperation,
        subject: &mut RuleSubject<'_>,
        answers: &Answers,
        budget: &EvaluationBudget<'_>,
        missing: &mut Vec<DataReference>,
    ) {
        let PolicyRules::Validate(rules, actions) = &policy.rules else {
            return;
        };
        // As in ValidatingAdmissionPolicy, a policy that does not deny does not refuse by failing either.
        let refuses =
            policy.failure_policy == FailurePolicyType::Fail && actions.contains(&ValidationAction::Deny);
        let outer = policy
            .outer_problem()
            .map_or(Ok(()), |problem| {
                Err(RuleStop::Failed(FailureReason::Policy, problem.to_string()))
            })
            .and_then(|()| subject.meets_conditions(policy, budget));
        match outer {
            Ok(true) => {}
            Ok(false) => return,
            Err(stop) => return self.note_stop(policy, None, stop, refuses, missing),
        }
        for (index, rule) in rules.iter().enumerate() {
            if !operation.is_among(&rule.operations) {
                continue;
            }
            match evaluate_rule(policy, rule, subject, answers, budget) {
                Ok(None) => {}
                Ok(Some((step, reason))) => self.findings.push(PolicyFinding {
                    policy: policy.key.clone(),
                    rule: index,
                    step,
                    reason,
                    actions: actions.clone(),
                }),
                Err(stop) => self.note_stop(policy, Some(index), stop, refuses, missing),
            }
        }
    }

    fn note(&mut self, failure: PolicyFailure, refuses: bool) {
        if refuses {
            self.refusals.push(failure);
        } else {
            self.ignored.push(failure);
        }
    }

    fn note_stop(
        &mut self,
        policy: &CompiledPolicy,
        rule: Option<usize>,
        stop: RuleStop,
        refuses: bool,
        missing: &mut Vec<DataReference>,
    ) {
        match stop {
            RuleStop::Missing(more) => missing.extend(more),
            RuleStop::Failed(reason, message) => {
                self.note(PolicyFailure::new(policy, rule, reason, message), refuses);
            }
        }
    }
}

/// Evaluates a rule up to the first step with a finding.
fn evaluate_rule(
    policy: &CompiledPolicy,
    rule: &CompiledRule,
    subject: &mut RuleSubject<'_>,
    answers: &Answers,
    budget: &EvaluationBudget<'_>,
) -> Result<Option<(RuleStep, String)>, RuleStop> {
    if let Some(problem) = rule.problems.first() {
        return Err(RuleStop::Failed(FailureReason::Policy, problem.to_string()));
    }
    subject.resolve(rule, answers)?;
    for (step, action) in &rule.steps {
        let failed = |message: &str| RuleStop::Failed(FailureReason::Step(*step), message.to_owned());
        if (budget.is_over)() {
            return Err(RuleStop::Failed(
                FailureReason::Deadline,
                "the time for the request has run out".into(),
            ));
        }
        let StepAction::Program(program, inputs) = action else {
            continue;
        };
        let verdict = subject.run(*step, &**program, inputs, answers, budget)?;
        let fields = verdict
            .as_object()
            .ok_or_else(|| failed("validate is not an object"))?;
        let is_valid = match fields.get("valid") {
            None => true,
            Some(Value::Bool(is_valid)) => *is_valid,
            Some(_) => return Err(failed("validate.valid is neither true nor false")),
        };
        if is_valid {
            continue;
        }
        let reason = match fields.get("reason") {
            Some(Value::String(reason)) if !reason.is_empty() => reason.clone(),
            None | Some(Value::Null | Value::String(_)) => format!("refused by {}", policy.key),
            Some(_) => return Err(failed("validate.reason is not a string")),
        };
        return Ok(Some((*step, reason)));
    }
    Ok(None)
}
