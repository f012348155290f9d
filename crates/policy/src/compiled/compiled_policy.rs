//! A policy that can be asked.

use serde_json::Value;

use super::{
    compiled_rule::CompiledRule,
    step::{InputKind, StepAction},
};
use crate::{
    AdmissionOperation, PolicyKey, PolicyObject, PolicyProblem, PolicySpec,
    api::{FailurePolicyType, MatchCondition, ValidationAction},
    engine::{Engines, RuleProgram, RuleSource},
    problem::PolicyProblems,
    selection::SubjectMatcher,
};

/// A policy that can be asked. Rules that are wrong fail when they are asked, and the failure policy says what becomes of that.
#[derive(Debug)]
pub struct CompiledPolicy {
    pub(crate) key: PolicyKey,
    pub(crate) failure_policy: FailurePolicyType,
    pub(crate) matcher: SubjectMatcher,
    pub(crate) conditions: Option<Box<dyn RuleProgram>>,
    pub(crate) rules: PolicyRules,
    /// What is wrong outside of its rules.
    outside: Vec<PolicyProblem>,
}

/// The rules of a policy.
#[derive(Debug)]
pub(crate) enum PolicyRules {
    Override(Vec<CompiledRule>),
    Validate(Vec<CompiledRule>, Vec<ValidationAction>),
}

// === impl CompiledPolicy ===

impl CompiledPolicy {
    /// Compiles a policy, whatever is wrong with its rules.
    ///
    /// # Errors
    ///
    /// When its kind's schema does not allow it: then it cannot be told which objects it is for.
    pub fn compile(object: &Value, engines: &Engines) -> Result<Self, Vec<PolicyProblem>> {
        let (object, _) = PolicyObject::read(object)?;
        Ok(Self::from_object(&object, engines))
    }

    /// Compiles a policy that was read.
    pub fn from_object(object: &PolicyObject, engines: &Engines) -> Self {
        let key = &object.key;
        let mut problems = PolicyProblems::below("spec");
        let (selectors, namespaces, conditions, failure_policy) = match &object.spec {
            PolicySpec::Override(spec) => (
                &spec.resource_selectors,
                spec.namespace_selector.as_ref(),
                &spec.match_conditions,
                spec.failure_policy,
            ),
            PolicySpec::Validate(spec) => (
                &spec.resource_selectors,
                spec.namespace_selector.as_ref(),
                &spec.match_conditions,
                spec.failure_policy,
            ),
        };
        let matcher = SubjectMatcher::new(key, selectors, namespaces, &mut problems);
        let conditions = compile_conditions(conditions, engines, &mut problems);
        let rules = match &object.spec {
            PolicySpec::Override(spec) => {
                let rules = spec.override_rules.iter().enumerate();
                let compile = |(index, rule)| CompiledRule::from_override_rule(key, index, rule, engines);
                PolicyRules::Override(rules.map(compile).collect())
            }
            PolicySpec::Validate(spec) => {
                let rules = spec.validate_rules.iter().enumerate();
                let compile = |(index, rule)| CompiledRule::from_validate_rule(key, index, rule, engines);
                let actions = match spec.validation_actions.as_slice() {
                    [] => vec![ValidationAction::Deny],
                    actions => actions.to_vec(),
                };
                PolicyRules::Validate(rules.map(compile).collect(), actions)
            }
        };
        Self {
            key: key.clone(),
            failure_policy: failure_policy.unwrap_or_default(),
            matcher,
            conditions,
            rules,
            outside: problems.into_problems(),
        }
    }

    /// Which policy it is.
    pub fn key(&self) -> &PolicyKey {
        &self.key
    }

    /// What becomes of a request when it fails.
    pub fn failure_policy(&self) -> FailurePolicyType {
        self.failure_policy
    }

    /// The apiVersions and kinds of the objects that it is for; none for all.
    pub fn kinds(&self) -> impl Iterator<Item = (&str, &str)> {
        self.matcher.kinds()
    }

    /// Whether any of its rules is for an operation.
    pub fn acts_on(&self, operation: AdmissionOperation) -> bool {
        let mut rules = self.compiled_rules().iter();
        rules.any(|rule| operation.is_among(&rule.operations))
    }

    /// Which of its rules, counted from 0, are for an operation.
    pub fn rules_for(&self, operation: AdmissionOperation) -> impl Iterator<Item = usize> {
        let rules = self.compiled_rules().iter().enumerate();
        rules
            .filter(move |(_, rule)| operation.is_among(&rule.operations))
            .map(|(index, _)| index)
    }

    /// Whether what its rules object to is told with this action.
    pub fn has_action(&self, action: ValidationAction) -> bool {
        match &self.rules {
            PolicyRules::Override(_) => false,
            PolicyRules::Validate(_, actions) => actions.contains(&action),
        }
    }

    /// Which of its rules, counted from 0, have programs that describe a request to a server themselves.
    pub fn requesting_rules(&self) -> impl Iterator<Item = usize> {
        let describes = |action: &StepAction| {
            let StepAction::Program(_, InputKind::Cue { processing, .. }) = action else {
                return false;
            };
            processing.is_some()
        };
        let rules = self.compiled_rules().iter().enumerate();
        rules
            .filter(move |(_, rule)| rule.steps.iter().any(|(_, action)| describes(action)))
            .map(|(index, _)| index)
    }

    /// What is wrong with it.
    pub fn problems(&self) -> Vec<PolicyProblem> {
        let of_rules = self.compiled_rules().iter().flat_map(|rule| &rule.problems);
        self.outside.iter().chain(of_rules).cloned().collect()
    }

    /// What is wrong outside of its rules: nothing can be asked then.
    pub(crate) fn outer_problem(&self) -> Option<&PolicyProblem> {
        self.outside.first()
    }

    /// What the template of each rule was rendered to, where it has one, and what is wrong with the rule.
    pub fn rule_states(&self) -> impl Iterator<Item = (Option<&str>, &[PolicyProblem])> {
        self.compiled_rules()
            .iter()
            .map(|rule| (rule.rendered.as_deref(), rule.problems.as_slice()))
    }

    pub(crate) fn compiled_rules(&self) -> &[CompiledRule] {
        match &self.rules {
            PolicyRules::Override(rules) | PolicyRules::Validate(rules, _) => rules,
        }
    }
}

fn compile_conditions(
    conditions: &[MatchCondition],
    engines: &Engines,
    problems: &mut PolicyProblems,
) -> Option<Box<dyn RuleProgram>> {
    if conditions.is_empty() {
        return None;
    }
    match engines.compile(RuleSource::CelConditions(conditions)) {
        Ok(program) => Some(program),
        Err(of_conditions) => {
            problems.extend("matchConditions", of_conditions);
            None
        }
    }
}
