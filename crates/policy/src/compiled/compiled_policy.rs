//! A compiled policy.

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

/// A compiled policy. Invalid rules fail when they are evaluated, and the failure policy applies.
#[derive(Debug)]
pub struct CompiledPolicy {
    pub(crate) key: PolicyKey,
    pub(crate) failure_policy: FailurePolicyType,
    pub(crate) matcher: SubjectMatcher,
    pub(crate) conditions: Option<Box<dyn RuleProgram>>,
    pub(crate) rules: PolicyRules,
    /// Problems outside of the rules.
    outside: Vec<PolicyProblem>,
}

/// The compiled rules of a policy.
#[derive(Debug)]
pub(crate) enum PolicyRules {
    Override(Vec<CompiledRule>),
    Validate(Vec<CompiledRule>, Vec<ValidationAction>),
}

impl CompiledPolicy {
    /// Parses and compiles a policy; its rules may have problems.
    ///
    /// # Errors
    ///
    /// If its kind's schema rejects it: then it is unknown which objects it selects.
    pub fn compile(object: &Value, engines: &Engines) -> Result<Self, Vec<PolicyProblem>> {
        let (object, _) = PolicyObject::read(object)?;
        Ok(Self::from_object(&object, engines))
    }

    /// Compiles a parsed policy.
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

    /// The identity of the policy.
    pub fn key(&self) -> &PolicyKey {
        &self.key
    }

    /// The handling of requests if the policy fails.
    pub fn failure_policy(&self) -> FailurePolicyType {
        self.failure_policy
    }

    /// The apiVersions and kinds of the selected objects; `None` for all.
    pub fn kinds(&self) -> impl Iterator<Item = (&str, &str)> {
        self.matcher.kinds()
    }

    /// Reports whether any of its rules applies to an operation.
    pub fn applies_to(&self, operation: AdmissionOperation) -> bool {
        let mut rules = self.compiled_rules().iter();
        rules.any(|rule| operation.is_among(&rule.operations))
    }

    /// Returns the indexes of the rules that apply to an operation.
    pub fn rules_for(&self, operation: AdmissionOperation) -> impl Iterator<Item = usize> {
        let rules = self.compiled_rules().iter().enumerate();
        rules
            .filter(move |(_, rule)| operation.is_among(&rule.operations))
            .map(|(index, _)| index)
    }

    /// Reports whether findings of its rules lead to this action.
    pub fn has_action(&self, action: ValidationAction) -> bool {
        match &self.rules {
            PolicyRules::Override(_) => false,
            PolicyRules::Validate(_, actions) => actions.contains(&action),
        }
    }

    /// Returns the indexes of the rules with programs that describe a request to a server.
    pub fn rules_with_requests(&self) -> impl Iterator<Item = usize> {
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

    /// Returns the problems of all rules and expressions.
    pub fn problems(&self) -> Vec<PolicyProblem> {
        let of_rules = self.compiled_rules().iter().flat_map(|rule| &rule.problems);
        self.outside.iter().chain(of_rules).cloned().collect()
    }

    /// Returns a problem outside of the rules, with which no rule can be evaluated.
    pub(crate) fn outer_problem(&self) -> Option<&PolicyProblem> {
        self.outside.first()
    }

    /// Returns the rendered template of each rule, if it has one, and the problems of the rule.
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
