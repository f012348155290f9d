//! The outcome of a request: overriding, then validation.

use crate::{
    AdmissionAttributes, Answers, DataReference, EvaluationBudget, FetchedAnswer, KnownData, OverrideOutcome,
    PolicyEvaluation, PolicyFailure, PolicyFinding, PolicySet, ValidationOutcome, api::ValidationAction,
};

/// The outcome of a request, as in an API server: validate policies get the overridden object.
#[derive(Clone, Debug, PartialEq)]
pub struct Rehearsal {
    /// The outcome of override policies.
    pub overriding: OverrideOutcome,
    /// The outcome of validate policies; `None` if an override policy refused the request.
    pub validation: Option<ValidationOutcome>,
    /// The fetched references, in order.
    pub fetched: Vec<(DataReference, FetchedAnswer)>,
}

impl Rehearsal {
    /// Evaluates policies. References resolve to the data in `known` only: see [`KnownData::answer`].
    pub fn run(
        policies: &PolicySet,
        attributes: &AdmissionAttributes<'_>,
        known: &[&KnownData],
        budget: &EvaluationBudget<'_>,
    ) -> Self {
        let mut fetched = Vec::new();
        let overriding = evaluate_with(known, &mut fetched, |answers| {
            policies.override_object(attributes, answers, budget)
        });
        let validation = overriding.refusal.is_none().then(|| {
            let attributes = AdmissionAttributes {
                object: attributes.object.map(|_| &overriding.object),
                ..*attributes
            };
            evaluate_with(known, &mut fetched, |answers| {
                policies.validate(&attributes, answers, budget)
            })
        });
        Self {
            overriding,
            validation,
            fetched,
        }
    }

    /// Reports whether the request is admitted.
    pub fn is_allowed(&self) -> bool {
        self.validation
            .as_ref()
            .is_some_and(ValidationOutcome::is_allowed)
    }

    /// Returns the findings with this action, in the order of policies and rules.
    pub fn findings(&self, action: ValidationAction) -> impl Iterator<Item = &PolicyFinding> {
        self.validation
            .iter()
            .flat_map(move |validation| validation.findings_with(action))
    }

    /// The failures for which the request is refused.
    pub fn refusals(&self) -> impl Iterator<Item = &PolicyFailure> {
        let of_validation = self.validation.iter().flat_map(|validation| &validation.refusals);
        self.overriding.refusal.iter().chain(of_validation)
    }

    /// The ignored failures.
    pub fn ignored(&self) -> impl Iterator<Item = &PolicyFailure> {
        let of_validation = self.validation.iter().flat_map(|validation| &validation.ignored);
        self.overriding.ignored.iter().chain(of_validation)
    }
}

/// Evaluates until no reference is missing. This ends because answered references are not requested again,
/// and each rule is evaluated once.
fn evaluate_with<T>(
    known: &[&KnownData],
    fetched: &mut Vec<(DataReference, FetchedAnswer)>,
    evaluate: impl Fn(&Answers) -> PolicyEvaluation<T>,
) -> T {
    let mut answers: Answers = fetched.iter().cloned().collect();
    loop {
        let missing = match evaluate(&answers) {
            PolicyEvaluation::Missing(missing) => missing,
            PolicyEvaluation::Done(outcome) => return outcome,
        };
        for reference in missing {
            if answers.get(&reference).is_none() {
                let answer = KnownData::answer(known, &reference);
                answers.insert(reference.clone(), answer.clone());
                fetched.push((reference, answer));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::tests::{compiled, overriding, validating};

    fn rehearsed(policies: &[Value], known: &KnownData) -> Rehearsal {
        let object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "n"}});
        let set = PolicySet::new(policies.iter().map(compiled));
        let attributes = AdmissionAttributes::create(&object);
        Rehearsal::run(&set, &attributes, &[known], &EvaluationBudget::default())
    }

    fn label_of(config_map: &str) -> Value {
        let reference = json!({
            "from": "k8s", "path": "/data/key",
            "k8s": {"apiVersion": "v1", "kind": "ConfigMap", "name": config_map},
        });
        let template = json!({"type": "labels", "operation": "replace", "path": "l", "valueRef": reference});
        overriding("labels", &[json!({ "template": template })])
    }

    fn known(name: &str) -> KnownData {
        let metadata = json!({"namespace": "n", "name": name});
        let object =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"key": name}});
        KnownData {
            objects: vec![object],
            responses: Vec::new(),
        }
    }

    #[test]
    fn overridden_objects_are_validated() {
        let reason = json!({"validate": {"valid": false, "reason": "$object/metadata/labels/l"}});
        let validation = validating("v", json!([{ "cue": reason.to_string() }]));
        let rehearsal = rehearsed(&[validation, label_of("a")], &known("a"));
        assert!(!rehearsal.is_allowed());
        let denials: Vec<_> = rehearsal.findings(ValidationAction::Deny).collect();
        assert_eq!((denials.len(), denials[0].reason.as_str()), (1, "a"));
        let fetched: Vec<_> = rehearsal
            .fetched
            .iter()
            .map(|(reference, _)| reference.to_string())
            .collect();
        assert_eq!(fetched, ["ConfigMap n/a"]);
    }

    #[test]
    fn refused_objects_are_not_validated() {
        let validation = validating("v", json!([{"cue": "{\"validate\": {\"valid\": false}}"}]));
        let rehearsal = rehearsed(&[validation, label_of("a")], &known("b"));
        assert!(!rehearsal.is_allowed());
        assert_eq!(rehearsal.validation, None);
        let refusals: Vec<_> = rehearsal.refusals().map(ToString::to_string).collect();
        assert_eq!(
            refusals,
            ["ClusterOverridePolicy labels: rule 0: ConfigMap n/a not found"]
        );
    }

    #[test]
    fn ignored_failures_are_listed_separately() {
        let mut overriding = label_of("a");
        overriding["spec"]["failurePolicy"] = "Ignore".into();
        let rehearsal = rehearsed(&[overriding], &KnownData::default());
        assert!(rehearsal.is_allowed());
        assert_eq!(
            (rehearsal.ignored().count(), rehearsal.refusals().count()),
            (1, 0)
        );
    }
}
