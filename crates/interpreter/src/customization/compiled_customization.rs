//! Compiles customizations to interpreters.

use std::{collections::BTreeMap, future, sync::Arc};

use super::{
    CustomizationProblem, CustomizationRules, FieldProblems,
    customization_object::{CustomizationKey, CustomizationObject},
    dependencies::merge_dependencies,
    script::Script,
    target::TargetMatcher,
};
use crate::{
    Answer, Interpreter, InterpretingMode, Operation, Question,
    answer::DependentObjectReference,
    declarative::{
        DeclaredAnswer, DeclaredDependencies, DeclaredHealth, DeclaredReplicas, DeclaredRevision,
        DeclaredStatus,
    },
    error::OtherAnswerError,
    interpreter::{AnswerFuture, InterpreterFailure},
    retention::RetainedFields,
};

/// A customization with compiled scripts and paths.
pub(crate) struct CompiledCustomization {
    pub(crate) key: CustomizationKey,
    pub(crate) targets: Vec<TargetMatcher>,
    pub(crate) mode: InterpretingMode,
    pub(crate) interpreters: BTreeMap<Operation, Arc<CustomizationInterpreter>>,
}

/// The interpreter of a customization for one operation.
pub(crate) struct CustomizationInterpreter {
    name: String,
    mode: InterpretingMode,
    fields: RetainedFields,
    declared: Option<DeclaredAnswer>,
    script: Option<Script>,
}

/// The operations whose answers can be combined.
const CHAINABLE: [Operation; 5] = [
    Operation::Retain,
    Operation::ReviseReplica,
    Operation::AggregateStatus,
    Operation::InterpretHealth,
    Operation::InterpretDependency,
];

impl CompiledCustomization {
    /// Compiles a customization.
    ///
    /// # Errors
    ///
    /// All problems, including those found while reading it.
    pub(crate) fn compile(
        object: CustomizationObject,
        mut problems: FieldProblems,
    ) -> Result<Self, Vec<CustomizationProblem>> {
        let compiled = Self::compile_valid_parts(object, &mut problems);
        problems.into_result(|| Some(compiled))
    }

    /// Compiles the valid parts of a customization and adds the problems of the others.
    pub(crate) fn compile_valid_parts(object: CustomizationObject, problems: &mut FieldProblems) -> Self {
        let mut interpreters = BTreeMap::new();
        for operation in Operation::ALL {
            let field = format!("spec.customizations.{}", CustomizationRules::field(operation));
            match CustomizationInterpreter::compile(&object, operation, &field) {
                Ok(None) => {}
                Ok(Some(interpreter)) => {
                    interpreters.insert(operation, Arc::new(interpreter));
                }
                Err(found) => problems.extend(found),
            }
        }
        let CustomizationObject {
            key, targets, mode, ..
        } = object;
        Self {
            key,
            targets,
            mode,
            interpreters,
        }
    }
}

impl CustomizationInterpreter {
    fn compile(
        object: &CustomizationObject,
        operation: Operation,
        field: &str,
    ) -> Result<Option<Self>, Vec<CustomizationProblem>> {
        let mut problems = FieldProblems::under(field);
        let name = object.key.to_string();
        let script = object.rules.lua_script(operation).and_then(|script| {
            let compiled = Script::compile(&name, operation, script);
            compiled.map_err(|error| problems.add("luaScript", error)).ok()
        });
        let declared = compile_declarative(&object.rules, operation, field).unwrap_or_else(|found| {
            problems.extend(found);
            None
        });
        let fields = match (operation, &object.rules.retention) {
            (Operation::Retain, Some(retention)) => RetainedFields::compile(&retention.fields)
                .unwrap_or_else(|errors| {
                    for (index, error) in errors {
                        problems.add(format!("fields[{index}]"), error);
                    }
                    RetainedFields::default()
                }),
            _ => RetainedFields::default(),
        };
        if declared.is_some() && script.is_some() && operation != Operation::InterpretDependency {
            problems.add("", "must not have both luaScript and declarative fields");
        }
        let is_empty = script.is_none() && declared.is_none() && fields.is_empty();
        if !is_empty && object.mode == InterpretingMode::Chain && !CHAINABLE.contains(&operation) {
            problems.add("", "must not be given with mode Chain");
        }
        let interpreter = (!is_empty).then(|| Self {
            name,
            mode: object.mode,
            fields,
            declared,
            script,
        });
        problems.into_result(|| Some(interpreter))
    }

    /// Answers a question of the interpreter's operation.
    pub(crate) fn answer(&self, question: Question<'_>) -> Result<Answer, InterpreterFailure> {
        match question {
            Question::Retain { desired, observed } => {
                let retained = self.fields.retain(desired, observed);
                match &self.script {
                    None => Ok(Answer::Object(retained)),
                    Some(script) => script.interpret(question.with_object(&retained)),
                }
            }
            Question::Dependency { .. } => Ok(Answer::Dependency(merge_dependencies(
                self.dependencies(question)?,
            )?)),
            _ => match (&self.declared, &self.script) {
                (Some(declared), _) => Ok(declared.answer(question)?),
                (None, Some(script)) => script.interpret(question),
                (None, None) => Err(OtherAnswerError(question.operation()).into()),
            },
        }
    }

    /// Returns the script, if there is one.
    #[cfg(feature = "lua")]
    pub(crate) fn script(&self) -> Option<&Script> {
        self.script.as_ref()
    }

    /// Returns the dependencies of an object before they are validated.
    pub(crate) fn dependencies(
        &self,
        question: Question<'_>,
    ) -> Result<Vec<DependentObjectReference>, InterpreterFailure> {
        let declared = self.declared.as_ref().map(|declared| declared.answer(question));
        let scripted = self.script.as_ref().map(|script| script.interpret(question));
        let mut found = Vec::new();
        for answer in [declared.transpose()?, scripted.transpose()?]
            .into_iter()
            .flatten()
        {
            match answer {
                Answer::Dependency(dependencies) => found.extend(dependencies),
                _ => return Err(OtherAnswerError(Operation::InterpretDependency).into()),
            }
        }
        Ok(found)
    }
}

impl Interpreter for CustomizationInterpreter {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn mode(&self) -> InterpretingMode {
        self.mode
    }

    fn interpret<'a>(&'a self, question: Question<'a>) -> AnswerFuture<'a> {
        Box::pin(future::ready(self.answer(question)))
    }
}

/// Compiles the declarative fields for an operation; `field` is their path.
fn compile_declarative(
    rules: &CustomizationRules,
    operation: Operation,
    field: &str,
) -> Result<Option<DeclaredAnswer>, Vec<CustomizationProblem>> {
    Ok(match operation {
        Operation::InterpretHealth => {
            let rule = rules.health_interpretation.as_ref();
            let health = rule.map(|rule| DeclaredHealth::compile(rule, field));
            health.transpose()?.flatten().map(DeclaredAnswer::Health)
        }
        Operation::InterpretReplica => {
            let rule = rules.replica_resource.as_ref();
            let replicas = rule.map(|rule| DeclaredReplicas::compile(rule, field));
            replicas.transpose()?.flatten().map(DeclaredAnswer::Replicas)
        }
        Operation::ReviseReplica => {
            let rule = rules.replica_revision.as_ref();
            let revision = rule.map(|rule| DeclaredRevision::compile(rule, field));
            revision.transpose()?.flatten().map(DeclaredAnswer::Revision)
        }
        Operation::InterpretStatus => {
            let rule = rules.status_reflection.as_ref();
            let status = rule.map(|rule| DeclaredStatus::compile(rule, field));
            status.transpose()?.flatten().map(DeclaredAnswer::Status)
        }
        Operation::InterpretDependency => {
            let rule = rules.dependency_interpretation.as_ref();
            let dependencies = rule.map(|rule| DeclaredDependencies::compile(rule, field));
            dependencies
                .transpose()?
                .flatten()
                .map(DeclaredAnswer::Dependencies)
        }
        Operation::Retain | Operation::InterpretComponent | Operation::AggregateStatus => None,
    })
}
