//! The ordered policies of a cluster.

use std::{collections::HashSet, sync::Arc};

use super::{
    failure::{FailureReason, PolicyFailure},
    override_outcome::{self, OverrideOutcome},
    validation::{self, ValidationOutcome},
};
use crate::{
    AdmissionAttributes, AdmissionOperation, Answers, CompiledPolicy, DataReference, EvaluationBudget,
    PolicyKind,
    selection::{PolicyIndex, SelectedSubject},
};

/// Policies in the order of evaluation: cluster-wide ones before those of a namespace, by name, each with its
/// rules in order.
#[derive(Debug, Default)]
pub struct PolicySet {
    overrides: OrderedPolicies,
    validations: OrderedPolicies,
}

/// Ordered policies with an index by kind.
#[derive(Debug, Default)]
struct OrderedPolicies {
    policies: Vec<Arc<CompiledPolicy>>,
    index: PolicyIndex,
}

/// The result of an evaluation.
#[derive(Clone, Debug, PartialEq)]
pub enum PolicyEvaluation<T> {
    /// References that must be fetched before the evaluation is repeated with their answers. None of them has
    /// an answer yet.
    Missing(Vec<DataReference>),
    /// The outcome.
    Done(T),
}

impl PolicySet {
    /// Creates a set; the last of several policies with the same key is kept.
    pub fn new(policies: impl IntoIterator<Item = Arc<CompiledPolicy>>) -> Self {
        let is_validation =
            |policy: &Arc<CompiledPolicy>| policy.key.kind == PolicyKind::ClusterValidatePolicy;
        let (validations, overrides) = policies.into_iter().partition(is_validation);
        Self {
            overrides: OrderedPolicies::new(overrides),
            validations: OrderedPolicies::new(validations),
        }
    }

    /// All policies, in order.
    pub fn policies(&self) -> impl Iterator<Item = &Arc<CompiledPolicy>> {
        self.overrides.policies.iter().chain(&self.validations.policies)
    }

    /// Returns the references to fetch before an object is overridden, as far as the original object
    /// determines them.
    pub fn override_needs(&self, attributes: &AdmissionAttributes<'_>) -> Vec<DataReference> {
        if attributes.operation == AdmissionOperation::Delete {
            return Vec::new();
        }
        self.overrides.needs(attributes)
    }

    /// Returns the references to fetch before an object is validated.
    pub fn validation_needs(&self, attributes: &AdmissionAttributes<'_>) -> Vec<DataReference> {
        self.validations.needs(attributes)
    }

    /// Evaluates override policies. A deletion changes nothing.
    pub fn override_object(
        &self,
        attributes: &AdmissionAttributes<'_>,
        answers: &Answers,
        budget: &EvaluationBudget<'_>,
    ) -> PolicyEvaluation<OverrideOutcome> {
        override_outcome::override_object(self.overrides.matching(attributes), attributes, answers, budget)
    }

    /// Evaluates validate policies.
    pub fn validate(
        &self,
        attributes: &AdmissionAttributes<'_>,
        answers: &Answers,
        budget: &EvaluationBudget<'_>,
    ) -> PolicyEvaluation<ValidationOutcome> {
        validation::validate(self.validations.matching(attributes), attributes, answers, budget)
    }

    /// Returns the policies that select an object, in order, and failures where this is unknown. Conditions
    /// are not evaluated.
    pub fn matching<'p>(
        &'p self,
        attributes: &'p AdmissionAttributes<'_>,
    ) -> impl Iterator<Item = Result<&'p CompiledPolicy, PolicyFailure>> {
        self.overrides
            .matching(attributes)
            .chain(self.validations.matching(attributes))
    }
}

impl OrderedPolicies {
    fn new(mut policies: Vec<Arc<CompiledPolicy>>) -> Self {
        policies.sort_by(|one, other| one.key.cmp(&other.key));
        // The last of equal keys is kept.
        policies.reverse();
        policies.dedup_by(|later, earlier| later.key == earlier.key);
        policies.reverse();
        let mut index = PolicyIndex::default();
        for (place, policy) in policies.iter().enumerate() {
            index.add(place, &policy.key.namespace, policy.matcher.kinds());
        }
        Self { policies, index }
    }

    fn matching<'p>(
        &'p self,
        attributes: &'p AdmissionAttributes<'_>,
    ) -> impl Iterator<Item = Result<&'p CompiledPolicy, PolicyFailure>> {
        let candidates = self.index.candidates(attributes.namespace(), attributes.kind());
        let subject = SelectedSubject::new(attributes);
        candidates.into_iter().filter_map(move |place| {
            let policy = &**self.policies.get(place)?;
            let acts = |rule: &crate::compiled::CompiledRule| attributes.operation.is_among(&rule.operations);
            if !policy.compiled_rules().iter().any(acts) {
                return None;
            }
            match policy.matcher.matches(&subject) {
                Ok(true) => Some(Ok(policy)),
                Ok(false) => None,
                Err(error) => {
                    let reason = FailureReason::Selection;
                    Some(Err(PolicyFailure::new(policy, None, reason, error.to_string())))
                }
            }
        })
    }

    fn needs(&self, attributes: &AdmissionAttributes<'_>) -> Vec<DataReference> {
        let mut seen = HashSet::new();
        self.matching(attributes)
            .filter_map(Result::ok)
            .flat_map(CompiledPolicy::compiled_rules)
            .filter(|rule| attributes.operation.is_among(&rule.operations))
            .flat_map(|rule| {
                rule.references
                    .needs(attributes.subject(), attributes.namespace())
            })
            .filter(|reference| seen.insert(reference.clone()))
            .collect()
    }
}
