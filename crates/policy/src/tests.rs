//! What tests of several modules use: an engine for programs that are JSON, and policies.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    CompiledPolicy, Engines, EvaluationBudget, PolicyProblem, ProgramError, RuleEngine, RuleProgram,
    RuleSource, TemplateRenderer,
    api::{OverrideRuleTemplate, POLICY_API_VERSION, ValidateRuleTemplate},
};

/// Programs are JSON: `patches` and `validate` are what they give. A text `$object/spec/a` is what is there in an input.
struct JsonEngine;

#[derive(Debug)]
struct JsonProgram(Value, &'static str);

/// Renders a label template to a program that takes its value from what it refers to, and a condition to one that objects.
struct TestRenderer;

impl RuleEngine for JsonEngine {
    fn compile(&self, source: RuleSource<'_>) -> Result<Box<dyn RuleProgram>, Vec<PolicyProblem>> {
        let (text, output) = match source {
            RuleSource::CueOverride(text) => (text.to_owned(), "patches"),
            RuleSource::CueValidation(text) => (text.to_owned(), "validate"),
            RuleSource::CelOverride(cel) => (cel.expression.clone(), "patches"),
            RuleSource::CelValidation(cel) => (cel.validations[0].expression.clone(), "validate"),
            RuleSource::CelConditions(conditions) => (conditions[0].expression.clone(), "met"),
        };
        let text = text.split("@tag(").next().unwrap();
        let program = serde_json::from_str(text).map_err(|error| {
            let position = crate::ProgramPosition {
                line: error.line(),
                column: error.column(),
            };
            vec![PolicyProblem {
                position: Some(position),
                ..PolicyProblem::new("", "is not JSON")
            }]
        })?;
        Ok(Box::new(JsonProgram(program, output)))
    }
}

impl RuleProgram for JsonProgram {
    fn evaluate(
        &self,
        inputs: &[(&str, &Value)],
        _: &EvaluationBudget<'_>,
    ) -> Result<Option<Value>, ProgramError> {
        let Some(output) = self.0.get(self.1) else {
            return Ok(None);
        };
        let mut output = output.clone();
        fill(&mut output, inputs)?;
        Ok(Some(output))
    }
}

fn fill(value: &mut Value, inputs: &[(&str, &Value)]) -> Result<(), ProgramError> {
    match value {
        Value::String(text) if text.starts_with('$') => {
            let (name, pointer) = text[1..].split_at(text[1..].find('/').unwrap_or(text.len() - 1));
            let input = inputs.iter().find(|(input, _)| *input == name);
            let found = input.and_then(|(_, input)| input.pointer(pointer));
            *value = found
                .cloned()
                .ok_or_else(|| ProgramError::new(format!("{text} is not there")))?;
            Ok(())
        }
        Value::Array(items) => items.iter_mut().try_for_each(|item| fill(item, inputs)),
        Value::Object(fields) => fields.values_mut().try_for_each(|field| fill(field, inputs)),
        _ => Ok(()),
    }
}

impl TemplateRenderer for TestRenderer {
    fn override_rule(&self, template: &OverrideRuleTemplate) -> Result<String, Vec<PolicyProblem>> {
        let Some(reference) = &template.value_ref else {
            return Err(vec![PolicyProblem::new("valueRef", "is missing")]);
        };
        let value = format!("$data/extraParams/{}", reference.path);
        let path = format!("/metadata/labels/{}", template.path);
        Ok(json!({"patches": [{"op": "replace", "path": path, "value": value}]}).to_string())
    }

    fn validate_rule(&self, template: &ValidateRuleTemplate) -> Result<String, Vec<PolicyProblem>> {
        let condition = template.condition.as_ref().unwrap();
        let reason = format!("$data/extraParams/{}", condition.data_ref.path);
        Ok(json!({"validate": {"valid": false, "reason": reason}}).to_string())
    }
}

/// Engines for tests.
pub(crate) fn engines() -> Engines {
    Engines {
        cue: Some(Arc::new(JsonEngine)),
        cel: Some(Arc::new(JsonEngine)),
        renderer: Some(Arc::new(TestRenderer)),
    }
}

/// A policy object; one with a namespace is an OverridePolicy.
pub(crate) fn policy(kind: &str, name: &str, spec: Value) -> Value {
    let (namespace, name) = name.split_once('/').unwrap_or(("", name));
    let mut policy =
        json!({"apiVersion": POLICY_API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec});
    if !namespace.is_empty() {
        policy["metadata"]["namespace"] = namespace.into();
    }
    policy
}

/// A policy with rules that have these overriders.
pub(crate) fn overriding(name: &str, overriders: &[Value]) -> Value {
    let rules: Vec<_> = overriders
        .iter()
        .map(|overriders| json!({"overriders": overriders}))
        .collect();
    let kind = if name.contains('/') {
        "OverridePolicy"
    } else {
        "ClusterOverridePolicy"
    };
    policy(kind, name, json!({"overrideRules": rules}))
}

/// A policy with these rules.
pub(crate) fn validating(name: &str, rules: Value) -> Value {
    policy("ClusterValidatePolicy", name, json!({"validateRules": rules}))
}

/// A policy that can be asked.
#[track_caller]
pub(crate) fn compiled(policy: &Value) -> Arc<CompiledPolicy> {
    Arc::new(CompiledPolicy::compile(policy, &engines()).unwrap())
}

/// A program that adds a text at a place.
pub(crate) fn adds(path: &str, value: impl Into<Value>) -> String {
    json!({"patches": [{"op": "add", "path": path, "value": value.into()}]}).to_string()
}
