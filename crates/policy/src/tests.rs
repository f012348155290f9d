//! Shared test fixtures: an engine for JSON programs, and policies. Rendered templates are CUE.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    CompiledPolicy, Engines, EvaluationBudget, PolicyProblem, ProgramError, RuleEngine, RuleProgram,
    RuleSource, api::POLICY_API_VERSION,
};

/// An engine whose programs are JSON: `patches` and `validate` are the outputs. A text `$object/spec/a` is
/// replaced by a value of an input.
struct JsonEngine;

#[derive(Debug)]
struct JsonProgram(Value, &'static str);

impl RuleEngine for JsonEngine {
    fn compile(&self, source: RuleSource<'_>) -> Result<Box<dyn RuleProgram>, Vec<PolicyProblem>> {
        let (text, output) = match source {
            RuleSource::CueOverride(text) => (text.to_owned(), "patches"),
            RuleSource::CueValidation(text) => (text.to_owned(), "validate"),
            RuleSource::CueProcessing(text) => (text.to_owned(), "processing"),
            RuleSource::CelOverride(cel) => (cel.expression.clone(), "patches"),
            RuleSource::CelValidation(cel) => (cel.validations[0].expression.clone(), "validate"),
            RuleSource::CelConditions(conditions) => (conditions[0].expression.clone(), "met"),
        };
        #[cfg(feature = "cue")]
        if text.contains("@tag(data)") {
            return crate::cue::CueEngine.compile(source);
        }
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
                .ok_or_else(|| ProgramError::new(format!("{text} does not exist")))?;
            Ok(())
        }
        Value::Array(items) => items.iter_mut().try_for_each(|item| fill(item, inputs)),
        Value::Object(fields) => fields.values_mut().try_for_each(|field| fill(field, inputs)),
        _ => Ok(()),
    }
}

pub(crate) fn engines() -> Engines {
    Engines {
        cue: Some(Arc::new(JsonEngine)),
        cel: Some(Arc::new(JsonEngine)),
    }
}

/// A policy object; with a namespace it is an OverridePolicy.
pub(crate) fn policy(kind: &str, name: &str, spec: Value) -> Value {
    let (namespace, name) = name.split_once('/').unwrap_or(("", name));
    let mut policy =
        json!({"apiVersion": POLICY_API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec});
    if !namespace.is_empty() {
        policy["metadata"]["namespace"] = namespace.into();
    }
    policy
}

/// A policy with one rule per overrider.
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

#[track_caller]
pub(crate) fn compiled(policy: &Value) -> Arc<CompiledPolicy> {
    Arc::new(CompiledPolicy::compile(policy, &engines()).unwrap())
}

/// A program that adds a text at a path.
pub(crate) fn adds(path: &str, value: impl Into<Value>) -> String {
    json!({"patches": [{"op": "add", "path": path, "value": value.into()}]}).to_string()
}
