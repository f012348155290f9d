//! Templates as programs: what is shown as `renderedCue`, and what runs.
//!
//! A program is formatted as `cue fmt` of CUE v0.4.3 leaves it, and stays within policy CUE. The same template always gives the same
//! program. It reads `data`: `object`, `oldObject` and `extraParams`, which has `otherObject` and `http` of `valueRef`, and `otherObject_d`
//! and `http_d` of `dataRef`. An override gives `patches`, a list of `add` and `remove` that any library for JSON patches applies. A
//! validation gives `validate`, with `valid` and, where that is false, `reason`; `affectMode` is minded already.
//!
//! What is missing in an object is no error: a program of a template without problems has an outcome for every object, but for a reference to
//! a list or an object where text is needed, or to what is not a regular expression.

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
/// With everything that is wrong with the template, each with its field below the template.
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
/// With everything that is wrong with the template, each with its field below the template.
pub fn render_validation(template: &ValidateRuleTemplate) -> Result<String, Vec<PolicyProblem>> {
    rendered(|program, problems| match &template.condition {
        Some(condition) => problems.within("condition", |problems| {
            condition::render(condition, program, problems);
        }),
        None => problems.note("condition", "is missing: type: condition needs it"),
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
