//! Rules that can be asked.

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

/// A rule that can be asked, or what keeps it from that.
#[derive(Debug)]
pub(crate) struct CompiledRule {
    pub(crate) operations: Vec<TargetOperation>,
    pub(crate) references: RuleReferences,
    pub(crate) steps: Vec<(RuleStep, StepAction)>,
    /// What its template was rendered to.
    pub(crate) rendered: Option<String>,
    pub(crate) problems: Vec<PolicyProblem>,
}

// === impl CompiledRule ===

impl CompiledRule {
    /// Compiles a rule of an override policy.
    pub(crate) fn of_override(key: &PolicyKey, index: usize, rule: &OverrideRule, engines: &Engines) -> Self {
        let mut compiled = Self::new(&rule.target_operations);
        let mut problems = PolicyProblems::below(format!("spec.overrideRules[{index}].overriders"));
        let overriders = &rule.overriders;
        if let Some(template) = &overriders.template {
            problems.within("template", |problems| {
                compiled.references = RuleReferences::of_override(key, template, problems);
            });
            let rendered = render::render_override(template);
            compiled.add_rendered(
                rendered,
                |text| RuleSource::CueOverride(text),
                engines,
                &mut problems,
            );
        }
        if !overriders.cue.is_empty() {
            let inputs = InputKind::of_cue(&overriders.cue, false, engines);
            let source = RuleSource::CueOverride(&overriders.cue);
            compiled.add_program(RuleStep::Cue, "cue", source, inputs, engines, &mut problems);
        }
        if let Some(cel) = &overriders.cel {
            let source = RuleSource::CelOverride(cel);
            compiled.add_program(
                RuleStep::Cel,
                "cel",
                source,
                InputKind::Cel,
                engines,
                &mut problems,
            );
        }
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
    pub(crate) fn of_validation(
        key: &PolicyKey,
        index: usize,
        rule: &ValidateRule,
        engines: &Engines,
    ) -> Self {
        let mut compiled = Self::new(&rule.target_operations);
        let mut problems = PolicyProblems::below(format!("spec.validateRules[{index}]"));
        if let Some(template) = &rule.template {
            problems.within("template", |problems| {
                compiled.references = RuleReferences::of_validation(key, template, problems);
            });
            let rendered = render::render_validation(template);
            compiled.add_rendered(
                rendered,
                |text| RuleSource::CueValidation(text),
                engines,
                &mut problems,
            );
        }
        if !rule.cue.is_empty() {
            let inputs = InputKind::of_cue(&rule.cue, true, engines);
            let source = RuleSource::CueValidation(&rule.cue);
            compiled.add_program(RuleStep::Cue, "cue", source, inputs, engines, &mut problems);
        }
        if let Some(cel) = &rule.cel {
            let source = RuleSource::CelValidation(cel);
            compiled.add_program(
                RuleStep::Cel,
                "cel",
                source,
                InputKind::Cel,
                engines,
                &mut problems,
            );
        }
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

    /// Adds what a template was rendered to. What was wrong with the template itself is not told a second time.
    fn add_rendered(
        &mut self,
        rendered: Result<String, Vec<PolicyProblem>>,
        source: fn(&str) -> RuleSource<'_>,
        engines: &Engines,
        problems: &mut PolicyProblems,
    ) {
        match rendered {
            Err(of_template) => problems.extend("template", of_template),
            Ok(text) => {
                let inputs = InputKind::Rendered;
                self.add_program(
                    RuleStep::RenderedCue,
                    "renderedCue",
                    source(&text),
                    inputs,
                    engines,
                    problems,
                );
                self.rendered = Some(text);
            }
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

/// The operations of `plaintext`.
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
