//! All policies of a cluster, in their order.

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

/// Policies in the order in which they are asked: cluster-wide ones before those of a namespace, by name, each with its rules in order.
#[derive(Debug, Default)]
pub struct PolicySet {
    overrides: OrderedPolicies,
    validations: OrderedPolicies,
}

/// Policies in their order, and which are for which kinds.
#[derive(Debug, Default)]
struct OrderedPolicies {
    policies: Vec<Arc<CompiledPolicy>>,
    index: PolicyIndex,
}

/// What an evaluation comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum PolicyEvaluation<T> {
    /// These have to be fetched; then it is asked again with their answers. They are none that an answer was given for.
    Missing(Vec<DataReference>),
    /// This.
    Done(T),
}

// === impl PolicySet ===

impl PolicySet {
    /// All of these policies. Of several with one key the last counts.
    pub fn new(policies: impl IntoIterator<Item = Arc<CompiledPolicy>>) -> Self {
        let is_validation =
            |policy: &Arc<CompiledPolicy>| policy.key.kind == PolicyKind::ClusterValidatePolicy;
        let (validations, overrides) = policies.into_iter().partition(is_validation);
        Self {
            overrides: OrderedPolicies::new(overrides),
            validations: OrderedPolicies::new(validations),
        }
    }

    /// All of them, in their order.
    pub fn policies(&self) -> impl Iterator<Item = &Arc<CompiledPolicy>> {
        self.overrides.policies.iter().chain(&self.validations.policies)
    }

    /// What has to be fetched before an object is overridden, as far as that can be told from the object as it comes.
    pub fn override_needs(&self, attributes: &AdmissionAttributes<'_>) -> Vec<DataReference> {
        if attributes.operation == AdmissionOperation::Delete {
            return Vec::new();
        }
        self.overrides.needs(attributes)
    }

    /// What has to be fetched before an object is validated.
    pub fn validation_needs(&self, attributes: &AdmissionAttributes<'_>) -> Vec<DataReference> {
        self.validations.needs(attributes)
    }

    /// What override policies make of an object. What is deleted is not changed.
    pub fn override_object(
        &self,
        attributes: &AdmissionAttributes<'_>,
        answers: &Answers,
        budget: &EvaluationBudget<'_>,
    ) -> PolicyEvaluation<OverrideOutcome> {
        override_outcome::override_object(self.overrides.matching(attributes), attributes, answers, budget)
    }

    /// What validate policies say to a request.
    pub fn validate(
        &self,
        attributes: &AdmissionAttributes<'_>,
        answers: &Answers,
        budget: &EvaluationBudget<'_>,
    ) -> PolicyEvaluation<ValidationOutcome> {
        validation::validate(self.validations.matching(attributes), attributes, answers, budget)
    }

    /// The policies that are for an object, in their order, and those of which that cannot be told. Conditions are not looked at.
    pub fn matching<'p>(
        &'p self,
        attributes: &'p AdmissionAttributes<'_>,
    ) -> impl Iterator<Item = Result<&'p CompiledPolicy, PolicyFailure>> {
        self.overrides
            .matching(attributes)
            .chain(self.validations.matching(attributes))
    }
}

// === impl OrderedPolicies ===

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
            match policy.matcher.is_for(&subject) {
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
