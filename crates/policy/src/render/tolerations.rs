//! Renders templates for tolerations.

use serde_json::{Value, json};

use crate::{
    api::{OverrideOperation, OverrideRuleTemplate, Toleration, TolerationOperator},
    origin::check_tolerations,
    problem::PolicyProblems,
};

use super::{
    cue_text::{CueElement, CueText, ValueText, comprehension, expression, field},
    patches::PatchList,
    pods::list_pods,
    quote::{literal, quote},
};

/// The path of a pod's tolerations, as an expression.
const PATH: &str = r#""\(pod.path)/tolerations""#;

pub(super) fn render(template: &OverrideRuleTemplate, program: &mut CueText, problems: &mut PolicyProblems) {
    if template.tolerations.is_empty() {
        problems.note("tolerations", "is missing: give at least one");
    }
    check_tolerations(&template.tolerations, problems);
    list_pods(program);
    program.import("list");
    let mut patches = PatchList::default();
    if template.operation != OverrideOperation::Remove {
        declare(&template.tolerations, program);
    }
    match template.operation {
        OverrideOperation::Add => {
            patches.add(
                "for pod in pods if len(pod.spec.tolerations) == _|_",
                PATH.to_owned(),
                expression("tolerations"),
            );
            patches.add(
                "for pod in pods if len(pod.spec.tolerations) != _|_ for it in tolerations if !list.Contains(pod.spec.tolerations, it)",
                r#""\(pod.path)/tolerations/-""#.to_owned(),
                expression("it"),
            );
        }
        OverrideOperation::Replace => {
            list_matching(&template.tolerations, program);
            patches.add(
                "for pod in pods if len(pod.spec.tolerations) == _|_",
                PATH.to_owned(),
                expression("tolerations"),
            );
            let more = comprehension("for one in tolerations", expression("one"));
            patches.add(
                "for it in known",
                "it.path".to_owned(),
                replace_others(vec![more]),
            );
        }
        OverrideOperation::Remove => {
            list_matching(&template.tolerations, program);
            patches.add(
                "for it in known if len(it.meant) > 0",
                "it.path".to_owned(),
                replace_others(Vec::new()),
            );
        }
    }
    patches.declare(program);
}

/// A list of the other tolerations, and `more`.
fn replace_others(more: Vec<CueElement>) -> ValueText {
    let others = comprehension(
        "for i, one in it.tolerations if !list.Contains(it.meant, i)",
        expression("one"),
    );
    ValueText::List([others].into_iter().chain(more).collect())
}

/// Adds the tolerations of the template to the program, without duplicates.
fn declare(tolerations: &[Toleration], program: &mut CueText) {
    let mut known: Vec<Value> = Vec::new();
    for toleration in tolerations.iter().map(|toleration| json!(toleration)) {
        if !known.contains(&toleration) {
            known.push(toleration);
        }
    }
    program.section("", "tolerations", literal(&known.into()));
}

/// Adds the list of the pods' tolerations to the program, with the indexes of matching ones.
fn list_matching(tolerations: &[Toleration], program: &mut CueText) {
    let meant = tolerations.iter().map(|toleration| {
        let mut clauses = "for i, one in pod.spec.tolerations".to_owned();
        for (name, text) in identity(toleration) {
            clauses.push_str(&match text {
                Some(text) => format!(" if one.{name} != _|_ if one.{name} == {}", quote(text)),
                None => format!(" if one.{name} == _|_"),
            });
        }
        comprehension(clauses, expression("i"))
    });
    program.section(
        "The existing tolerations, and the indexes of those to replace or remove.",
        "known",
        ValueText::List(vec![comprehension(
            "for pod in pods if len(pod.spec.tolerations) != _|_",
            ValueText::Struct(vec![
                field("path", expression(PATH)),
                field("tolerations", expression("pod.spec.tolerations")),
                field("meant", ValueText::List(meant.collect())),
            ]),
        )]),
    );
}

/// Returns the fields by which a toleration matches others: its key, its value unless it tolerates any, and
/// its effect if it has one. `None` requires a missing field.
fn identity(toleration: &Toleration) -> Vec<(&'static str, Option<&str>)> {
    let mut identity = vec![("key", non_empty(&toleration.key))];
    if toleration.operator != Some(TolerationOperator::Exists) {
        identity.push(("value", non_empty(&toleration.value)));
    }
    if !toleration.effect.is_empty() {
        identity.push(("effect", non_empty(&toleration.effect)));
    }
    identity
}

fn non_empty(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}
