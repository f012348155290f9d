//! Compiled rules.

use super::step::{InputKind, RuleStep, StepAction};
use crate::{
    PolicyKey, PolicyProblem,
    api::{OverrideOperation, OverrideRule, PlaintextOverrider, TargetOperation, ValidateRule},
    engine::{Engines, RuleSource},
    origin,
    patch::{JsonPatch, JsonPatchOperation, Pointer},
    problem::PolicyProblems,
    reference::RuleReferences,
    render,
};

/// A compiled rule, or its problems.
#[derive(Debug)]
pub(crate) struct CompiledRule {
    pub(crate) operations: Vec<TargetOperation>,
    pub(crate) references: RuleReferences,
    pub(crate) steps: Vec<(RuleStep, StepAction)>,
    /// The rendered template.
    pub(crate) rendered: Option<String>,
    pub(crate) problems: Vec<PolicyProblem>,
}

/// The sources of a rule's programs.
struct RulePrograms<'a> {
    /// The rendered template, or a problem in it.
    rendered: Option<Result<String, Vec<PolicyProblem>>>,
    /// Empty if there is none.
    cue: &'a str,
    cel: Option<RuleSource<'a>>,
    cue_source: for<'t> fn(&'t str) -> RuleSource<'t>,
    is_validation: bool,
}

impl CompiledRule {
    /// Compiles a rule of an override policy.
    pub(crate) fn from_override_rule(
        key: &PolicyKey,
        index: usize,
        rule: &OverrideRule,
        engines: &Engines,
    ) -> Self {
        let mut compiled = Self::new(&rule.target_operations);
        let mut problems = PolicyProblems::below(format!("spec.overrideRules[{index}].overriders"));
        let overriders = &rule.overriders;
        if let Some(template) = &overriders.template {
            problems.within("template", |problems| {
                compiled.references = RuleReferences::from_override_template(key, template, problems);
            });
        }
        let programs = RulePrograms {
            rendered: overriders.template.as_ref().map(render::render_override),
            cue: &overriders.cue,
            cel: overriders.cel.as_ref().map(RuleSource::CelOverride),
            cue_source: |text| RuleSource::CueOverride(text),
            is_validation: false,
        };
        compiled.add_programs(programs, engines, &mut problems);
        if !overriders.origin.is_empty() {
            origin::check(&overriders.origin, &mut problems);
            let action = StepAction::Origin(overriders.origin.clone());
            compiled.steps.push((RuleStep::Origin, action));
        }
        if !overriders.plaintext.is_empty() {
            let patch = plaintext(&overriders.plaintext, &mut problems);
            compiled
                .steps
                .push((RuleStep::Plaintext, StepAction::Plaintext(patch)));
        }
        compiled.problems = problems.into_problems();
        compiled
    }

    /// Compiles a rule of a validate policy.
    pub(crate) fn from_validate_rule(
        key: &PolicyKey,
        index: usize,
        rule: &ValidateRule,
        engines: &Engines,
    ) -> Self {
        let mut compiled = Self::new(&rule.target_operations);
        let mut problems = PolicyProblems::below(format!("spec.validateRules[{index}]"));
        if let Some(template) = &rule.template {
            problems.within("template", |problems| {
                compiled.references = RuleReferences::from_validate_template(key, template, problems);
            });
        }
        let programs = RulePrograms {
            rendered: rule.template.as_ref().map(render::render_validation),
            cue: &rule.cue,
            cel: rule.cel.as_ref().map(RuleSource::CelValidation),
            cue_source: |text| RuleSource::CueValidation(text),
            is_validation: true,
        };
        compiled.add_programs(programs, engines, &mut problems);
        compiled.problems = problems.into_problems();
        compiled
    }

    fn new(operations: &[TargetOperation]) -> Self {
        Self {
            operations: operations.to_vec(),
            references: RuleReferences::default(),
            steps: Vec::new(),
            rendered: None,
            problems: Vec::new(),
        }
    }

    /// Compiles programs in the order of evaluation. Problems of a template are not repeated.
    fn add_programs(&mut self, programs: RulePrograms<'_>, engines: &Engines, problems: &mut PolicyProblems) {
        match programs.rendered {
            Some(Err(of_template)) => problems.extend("template", of_template),
            Some(Ok(text)) => {
                let (source, inputs) = ((programs.cue_source)(&text), InputKind::Rendered);
                self.add_program(
                    RuleStep::RenderedCue,
                    "renderedCue",
                    source,
                    inputs,
                    engines,
                    problems,
                );
                self.rendered = Some(text);
            }
            None => {}
        }
        if !programs.cue.is_empty() {
            let inputs = InputKind::from_cue(programs.cue, programs.is_validation, engines);
            let source = (programs.cue_source)(programs.cue);
            self.add_program(RuleStep::Cue, "cue", source, inputs, engines, problems);
        }
        if let Some(source) = programs.cel {
            self.add_program(RuleStep::Cel, "cel", source, InputKind::Cel, engines, problems);
        }
    }

    fn add_program(
        &mut self,
        step: RuleStep,
        field: &str,
        source: RuleSource<'_>,
        inputs: InputKind,
        engines: &Engines,
        problems: &mut PolicyProblems,
    ) {
        match engines.compile(source) {
            Ok(program) => self.steps.push((step, StepAction::Program(program, inputs))),
            Err(of_program) => problems.extend(field, of_program),
        }
    }
}

/// Parses the operations of `plaintext`.
fn plaintext(overriders: &[PlaintextOverrider], problems: &mut PolicyProblems) -> JsonPatch {
    let mut patch = JsonPatch::new();
    for (index, overrider) in overriders.iter().enumerate() {
        let PlaintextOverrider {
            path,
            operation,
            value,
        } = overrider;
        problems.within(format!("plaintext[{index}]"), |problems| {
            let path = match Pointer::parse(path) {
                Ok(path) if path.tokens().is_empty() => {
                    return problems.note("path", "must not be the object as a whole");
                }
                Ok(path) => path,
                Err(error) => return problems.note("path", error),
            };
            patch.push(match operation {
                OverrideOperation::Remove => JsonPatchOperation::Remove(path),
                _ if value.is_null() => return problems.note("value", "must be given"),
                OverrideOperation::Add => JsonPatchOperation::Add(path, value.clone()),
                OverrideOperation::Replace => JsonPatchOperation::Replace(path, value.clone()),
            });
        });
    }
    patch
}
