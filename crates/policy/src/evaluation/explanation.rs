//! Explains whether a policy applies to an object.

use serde_json::Value;

use super::{failure::RuleStop, subject::RuleSubject};
use crate::{
    AdmissionAttributes, AdmissionOperation, CompiledPolicy, Engines, EvaluationBudget, PolicyKey,
    PolicyObject, PolicySpec,
    api::{MatchCondition, ResourceSelector, TargetOperation},
    selection::{self, SelectedSubject},
};

/// Whether a policy applies to an object, with the result of each part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyExplanation {
    /// Key of the explained policy.
    pub policy: PolicyKey,
    /// The conditions on the policy level: its namespace, its selectors, of which one must match, and its
    /// conditions.
    pub parts: Vec<ExplainedPart>,
    /// Each rule of the policy, with whether it applies.
    pub rules: Vec<ExplainedPart>,
    /// Whether any rule is evaluated.
    pub is_asked: bool,
}

/// Whether a part of a policy matches an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedPart {
    /// The field, for example `spec.resourceSelectors[0]`.
    pub field: String,
    /// The first mismatch; `None` if the part matches.
    pub mismatch: Option<String>,
}

/// The selection of a policy of any kind.
struct Selection<'a> {
    selectors: &'a [ResourceSelector],
    namespace_selector: Option<&'a Value>,
    conditions: &'a [MatchCondition],
}

impl PolicyExplanation {
    /// Explains a policy without evaluating its rules.
    pub fn new(
        policy: &PolicyObject,
        engines: &Engines,
        attributes: &AdmissionAttributes<'_>,
        budget: &EvaluationBudget<'_>,
    ) -> Self {
        let mut parts = Vec::new();
        let key = &policy.key;
        if !key.namespace.is_empty() {
            let namespace = attributes.namespace();
            let mismatch = (namespace != key.namespace)
                .then(|| format!("namespace is {}, not {}", or_none(namespace), key.namespace));
            parts.push(ExplainedPart::new("metadata.namespace", mismatch));
        }
        let selection = Selection::new(&policy.spec);
        for (index, selector) in selection.selectors.iter().enumerate() {
            let field = format!("spec.resourceSelectors[{index}]");
            parts.push(ExplainedPart::new(
                field,
                selection::mismatch(selector, attributes),
            ));
        }
        if let Some(selector) = selection.namespace_selector {
            let mismatch = namespace_mismatch(selector, attributes);
            parts.push(ExplainedPart::new("spec.namespaceSelector", mismatch));
        }
        let mut is_selected = compiled(policy, &[], engines)
            .matcher
            .matches(&SelectedSubject::new(attributes))
            .unwrap_or(false);
        for (index, condition) in selection.conditions.iter().enumerate() {
            let alone = compiled(policy, std::slice::from_ref(condition), engines);
            let mismatch = unmet(&alone, condition, attributes, budget);
            is_selected &= mismatch.is_none();
            parts.push(ExplainedPart::new(
                format!("spec.matchConditions[{index}]"),
                mismatch,
            ));
        }
        let rules = rules(&policy.spec, attributes.operation);
        Self {
            policy: key.clone(),
            is_asked: is_selected && rules.iter().any(|rule| rule.mismatch.is_none()),
            parts,
            rules,
        }
    }
}

/// Compiles the conditions as a policy without rules.
fn compiled(policy: &PolicyObject, conditions: &[MatchCondition], engines: &Engines) -> CompiledPolicy {
    let mut spec = policy.spec.clone();
    match &mut spec {
        PolicySpec::Override(spec) => {
            spec.override_rules.clear();
            conditions.clone_into(&mut spec.match_conditions);
        }
        PolicySpec::Validate(spec) => {
            spec.validate_rules.clear();
            conditions.clone_into(&mut spec.match_conditions);
        }
    }
    let key = policy.key.clone();
    CompiledPolicy::from_object(&PolicyObject { key, spec }, engines)
}

fn unmet(
    policy: &CompiledPolicy,
    condition: &MatchCondition,
    attributes: &AdmissionAttributes<'_>,
    budget: &EvaluationBudget<'_>,
) -> Option<String> {
    let name = &condition.name;
    if let Some(problem) = policy.outer_problem() {
        return Some(format!("{name}: {}", problem.message));
    }
    match RuleSubject::new(attributes).meets_conditions(policy, budget) {
        Ok(true) => None,
        Ok(false) => Some(format!("{name}: is false")),
        Err(RuleStop::Failed(_, message)) => Some(format!("{name}: {message}")),
        Err(RuleStop::Missing(_)) => Some(format!("{name}: references unavailable data")),
    }
}

fn namespace_mismatch(selector: &Value, attributes: &AdmissionAttributes<'_>) -> Option<String> {
    let namespace = match attributes.namespace() {
        _ if attributes.is_namespace() => attributes.subject(),
        "" => return None,
        name => match attributes.namespace_object {
            Some(namespace) => namespace,
            None => return Some(format!("the Namespace {name} is not known")),
        },
    };
    selection::label_mismatch(selector, namespace)
}

fn rules(spec: &PolicySpec, operation: AdmissionOperation) -> Vec<ExplainedPart> {
    let explained = |field: String, targets: &[TargetOperation]| {
        let mismatch = (!operation.is_among(targets)).then(|| {
            let targets = serde_json::to_value(targets).unwrap_or_default();
            let targets: Vec<_> = targets.as_array().into_iter().flatten().collect();
            let targets: Vec<_> = targets.into_iter().filter_map(Value::as_str).collect();
            format!(
                "targetOperations are {}, not {}",
                targets.join(", "),
                operation.name()
            )
        });
        ExplainedPart::new(field, mismatch)
    };
    match spec {
        PolicySpec::Override(_) if operation == AdmissionOperation::Delete => {
            let refused = |index| {
                let mismatch = "deletions are not overridden".to_owned();
                ExplainedPart::new(format!("spec.overrideRules[{index}]"), Some(mismatch))
            };
            (0..rules_of(spec)).map(refused).collect()
        }
        PolicySpec::Override(spec) => {
            let rules = spec.override_rules.iter().enumerate();
            rules
                .map(|(index, rule)| {
                    explained(format!("spec.overrideRules[{index}]"), &rule.target_operations)
                })
                .collect()
        }
        PolicySpec::Validate(spec) => {
            let rules = spec.validate_rules.iter().enumerate();
            rules
                .map(|(index, rule)| {
                    explained(format!("spec.validateRules[{index}]"), &rule.target_operations)
                })
                .collect()
        }
    }
}

fn rules_of(spec: &PolicySpec) -> usize {
    match spec {
        PolicySpec::Override(spec) => spec.override_rules.len(),
        PolicySpec::Validate(spec) => spec.validate_rules.len(),
    }
}

/// Returns a name, or a placeholder for an empty one.
fn or_none(name: &str) -> &str {
    if name.is_empty() { "empty" } else { name }
}

impl ExplainedPart {
    fn new(field: impl Into<String>, mismatch: Option<String>) -> Self {
        Self {
            field: field.into(),
            mismatch,
        }
    }
}

impl<'a> Selection<'a> {
    fn new(spec: &'a PolicySpec) -> Self {
        match spec {
            PolicySpec::Override(spec) => Self {
                selectors: &spec.resource_selectors,
                namespace_selector: spec.namespace_selector.as_ref(),
                conditions: &spec.match_conditions,
            },
            PolicySpec::Validate(spec) => Self {
                selectors: &spec.resource_selectors,
                namespace_selector: spec.namespace_selector.as_ref(),
                conditions: &spec.match_conditions,
            },
        }
    }
}
