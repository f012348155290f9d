//! Renders templates to programs, which are shown as `renderedCue` and evaluated.
//!
//! A program is formatted like `cue fmt` of CUE v0.4.3, and stays within policy CUE. Rendering is
//! deterministic. The program reads `data`: `object`, `oldObject` and `extraParams`, which has `otherObject`
//! and `http` of `valueRef`, and `otherObject_d` and `http_d` of `dataRef`. An override yields `patches`, a
//! list of `add` and `remove` that any library for JSON patches can apply. A validation yields `validate`,
//! with `valid` and, if that is false, `reason`; it takes `affectMode` into account.
//!
//! Missing values in an object are not errors: the program of a valid template has an outcome for every
//! object, except if a reference yields a list or an object in place of text, or an invalid regular
//! expression.

mod affinity;
mod comparison;
mod condition;
mod constant;
mod cue_text;
mod decimal;
mod metadata;
mod oversell;
mod patches;
mod pods;
mod quote;
mod reference;
mod resources;
#[cfg(test)]
mod tests;
mod tolerations;

use crate::{
    api::{OverrideRuleTemplate, OverrideTemplateType, ValidateRuleTemplate},
    problem::{PolicyProblem, PolicyProblems},
};

use self::cue_text::CueText;

/// Renders the template of an override.
///
/// # Errors
///
/// Every problem of the template, each with its field below the template.
pub fn render_override(template: &OverrideRuleTemplate) -> Result<String, Vec<PolicyProblem>> {
    rendered(|program, problems| match template.template_type {
        OverrideTemplateType::Annotations | OverrideTemplateType::Labels => {
            metadata::render(template, program, problems);
        }
        OverrideTemplateType::ResourcesOversell => oversell::render(template, program, problems),
        OverrideTemplateType::Resources => resources::render(template, program, problems),
        OverrideTemplateType::Affinity => affinity::render(template, program, problems),
        OverrideTemplateType::Tolerations => tolerations::render(template, program, problems),
    })
}

/// Renders the template of a validation.
///
/// # Errors
///
/// Every problem of the template, each with its field below the template.
pub fn render_validation(template: &ValidateRuleTemplate) -> Result<String, Vec<PolicyProblem>> {
    rendered(|program, problems| match &template.condition {
        Some(condition) => problems.within("condition", |problems| {
            condition::render(condition, program, problems);
        }),
        None => problems.note("condition", "is missing: type: condition requires the field it"),
    })
}

fn rendered(render: impl FnOnce(&mut CueText, &mut PolicyProblems)) -> Result<String, Vec<PolicyProblem>> {
    let mut program = CueText::default();
    let mut problems = PolicyProblems::default();
    render(&mut program, &mut problems);
    let problems = problems.into_problems();
    if problems.is_empty() {
        Ok(program.write())
    } else {
        Err(problems)
    }
}
