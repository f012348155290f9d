//! What becomes of a request: first it is overridden, then validated.

use crate::{
    AdmissionAttributes, Answers, DataReference, EvaluationBudget, FetchedAnswer, KnownData, OverrideOutcome,
    PolicyEvaluation, PolicyFailure, PolicyFinding, PolicySet, ValidationOutcome, api::ValidationAction,
};

/// What becomes of a request, as an API server would have it: what override policies make of the object is validated.
#[derive(Clone, Debug, PartialEq)]
pub struct Rehearsal {
    /// What override policies make of the object.
    pub overriding: OverrideOutcome,
    /// What validate policies say to that; `None` where an override policy has refused already.
    pub validation: Option<ValidationOutcome>,
    /// What was fetched for it, in the order in which it was needed.
    pub fetched: Vec<(DataReference, FetchedAnswer)>,
}

// === impl Rehearsal ===

impl Rehearsal {
    /// Asks policies. What they refer to is what `known` has, and nothing else: see [`KnownData::answer`].
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

    /// Whether the request may go on.
    pub fn is_allowed(&self) -> bool {
        self.validation
            .as_ref()
            .is_some_and(ValidationOutcome::is_allowed)
    }

    /// What is objected to with this action, in the order of policies and rules.
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

    /// The failures that do not matter, as their policies say.
    pub fn ignored(&self) -> impl Iterator<Item = &PolicyFailure> {
        let of_validation = self.validation.iter().flat_map(|validation| &validation.ignored);
        self.overriding.ignored.iter().chain(of_validation)
    }
}

/// Evaluates until nothing is missing. It comes to an end: what there is an answer for is not asked for again, and each rule is asked
/// once.
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
    fn what_was_overridden_is_validated() {
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
    fn what_is_refused_is_not_validated() {
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
    fn what_fails_and_may_is_told_apart() {
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
