//! The current state of the object during an evaluation.

use std::cell::OnceCell;

use serde_json::{Map, Value, json};
use windlass_object::object;

use super::{
    failure::{FailureReason, RuleStop},
    processing,
};
use crate::{
    AdmissionAttributes, AdmissionOperation, Answers, CompiledPolicy, EvaluationBudget,
    compiled::{CompiledRule, InputKind, RuleStep},
    engine::RuleProgram,
    reference::ReferenceResolution,
};

/// Fields of a request that are objects, or as large as one.
const LARGE: [&str; 3] = ["object", "oldObject", "options"];

/// The current object, with all inputs of programs.
pub(super) struct RuleSubject<'a> {
    attributes: &'a AdmissionAttributes<'a>,
    /// `object`, `oldObject` and `extraParams`: the complete input of rendered programs.
    data: Value,
    request: OnceCell<Value>,
}

impl<'a> RuleSubject<'a> {
    pub(super) fn new(attributes: &'a AdmissionAttributes<'a>) -> Self {
        let is_update = attributes.operation == AdmissionOperation::Update;
        let old_object = attributes.old_object.filter(|_| is_update);
        let mut data = Map::new();
        data.insert("object".into(), attributes.subject().clone());
        data.insert(
            "oldObject".into(),
            old_object.cloned().unwrap_or_else(|| json!({})),
        );
        data.insert("extraParams".into(), json!({}));
        Self {
            attributes,
            data: data.into(),
            request: OnceCell::new(),
        }
    }

    pub(super) fn object(&self) -> &Value {
        &self.data["object"]
    }

    pub(super) fn object_mut(&mut self) -> &mut Value {
        &mut self.data["object"]
    }

    pub(super) fn into_object(mut self) -> Value {
        self.data["object"].take()
    }

    /// Evaluates the conditions of a policy.
    pub(super) fn meets_conditions(
        &self,
        policy: &CompiledPolicy,
        budget: &EvaluationBudget<'_>,
    ) -> Result<bool, RuleStop> {
        let failed = |message| RuleStop::Failed(FailureReason::Selection, message);
        let Some(conditions) = &policy.conditions else {
            return Ok(true);
        };
        let met = conditions.evaluate(&self.inputs(&InputKind::Cel), budget);
        match met {
            Ok(Some(Value::Bool(met))) => Ok(met),
            Ok(_) => Err(failed("matchConditions: must be true or false".into())),
            Err(error) => Err(failed(format!("matchConditions: {error}"))),
        }
    }

    /// Resolves the references of a rule into the input of its rendered program.
    pub(super) fn resolve(&mut self, rule: &CompiledRule, answers: &Answers) -> Result<(), RuleStop> {
        let namespace = self.attributes.namespace();
        match rule.references.resolve(self.object(), namespace, answers) {
            ReferenceResolution::Ready(found) => {
                self.data["extraParams"] = found;
                Ok(())
            }
            ReferenceResolution::Missing(missing) => Err(RuleStop::Missing(missing)),
            ReferenceResolution::Failed(error) => Err(RuleStop::Failed(FailureReason::Reference, error)),
        }
    }

    /// Evaluates a program of a rule.
    pub(super) fn run(
        &self,
        step: RuleStep,
        program: &dyn RuleProgram,
        inputs: &InputKind,
        answers: &Answers,
        budget: &EvaluationBudget<'_>,
    ) -> Result<Value, RuleStop> {
        let failed = |message| RuleStop::Failed(FailureReason::Step(step), message);
        let mut given = self.inputs(inputs);
        let processed = match inputs {
            InputKind::Cue {
                processing: Some(processing),
                ..
            } => {
                let processing = processing.evaluate(&given, budget);
                let processing = processing.map_err(|error| failed(error.to_string()))?;
                processing::with_output(&processing.unwrap_or_default(), answers)?
            }
            _ => None,
        };
        given.extend(processed.as_ref().map(|processed| ("processing", processed)));
        let given = program.evaluate(&given, budget);
        given.map_err(|error| failed(error.to_string()))?.ok_or_else(|| {
            failed("the program does not have the required field: patches, or validate".into())
        })
    }

    fn inputs(&self, kind: &InputKind) -> Vec<(&'static str, &Value)> {
        let old_object = &self.data["oldObject"];
        let is_update = self.attributes.operation == AdmissionOperation::Update;
        let namespace_object = self.attributes.namespace_object.unwrap_or(&Value::Null);
        match kind {
            InputKind::Rendered => vec![("data", &self.data)],
            InputKind::Cue {
                has_old_object,
                has_request,
                has_namespace_object,
                ..
            } => {
                let inputs = [
                    (true, "object", self.object()),
                    (*has_old_object && is_update, "oldObject", old_object),
                    (*has_namespace_object, "namespaceObject", namespace_object),
                ];
                let request = has_request.then(|| ("request", self.request()));
                let inputs = inputs.into_iter().filter(|(is_given, ..)| *is_given);
                inputs
                    .map(|(_, name, value)| (name, value))
                    .chain(request)
                    .collect()
            }
            InputKind::Cel => {
                let object = self.attributes.object.map_or(&Value::Null, |_| self.object());
                let old_object = self.attributes.old_object.unwrap_or(&Value::Null);
                vec![
                    ("object", object),
                    ("oldObject", old_object),
                    ("request", self.request()),
                    ("namespaceObject", namespace_object),
                ]
            }
        }
    }

    /// The attributes of the request; without a request, those known from the object.
    fn request(&self) -> &Value {
        self.request.get_or_init(|| {
            let (api_version, kind) = self.attributes.kind();
            let (group, version) = object::group_and_version(api_version);
            let mut request = json!({
                "operation": self.attributes.operation.name(),
                "name": self.attributes.name(),
                "namespace": self.attributes.namespace(),
                "kind": {"group": group, "version": version, "kind": kind},
                "subResource": "",
                "dryRun": false,
                "userInfo": {},
            });
            let given = self.attributes.request.as_object().into_iter().flatten();
            for (name, value) in given.filter(|(name, _)| !LARGE.contains(&name.as_str())) {
                request[name] = value.clone();
            }
            request
        })
    }
}
