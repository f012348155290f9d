//! Renders templates for requests and limits.

use serde_json::{Map, Value};
use windlass_object::Quantity;

use crate::{
    api::{IntOrString, OverrideOperation, OverrideRuleTemplate, ResourceRequirements},
    patch::Pointer,
    problem::PolicyProblems,
};

use super::{
    cue_text::{CueText, expression},
    patches::PatchList,
    pods::list_containers,
    quote::{label, literal, quote},
};

pub(super) fn render(template: &OverrideRuleTemplate, program: &mut CueText, problems: &mut PolicyProblems) {
    let Some(resources) = &template.resources else {
        problems.note("resources", "is missing: give limits or requests");
        return;
    };
    list_containers(program, &template.containers);
    let is_removed = template.operation == OverrideOperation::Remove;
    let amounts = problems.within("resources", |problems| amounts(resources, is_removed, problems));
    let mut patches = PatchList::default();
    if is_removed {
        for (list, names) in &amounts {
            for name in names.keys() {
                let amount = format!("it.container.resources.{list}.{}", label(name));
                patches.remove(
                    &format!("for it in containers if {amount} != _|_"),
                    below_container(&Pointer::from_tokens(["resources", list, name])),
                );
            }
        }
    } else {
        program.section("", "resources", literal(&Value::from_iter(amounts.clone())));
        patches.add(
            "for it in containers if len(it.container.resources) == _|_",
            below_container(&Pointer::from_tokens(["resources"])),
            expression("resources"),
        );
        for (list, names) in &amounts {
            let known = format!("len(it.container.resources.{list})");
            patches.add(
                &format!("for it in containers if len(it.container.resources) != _|_ if {known} == _|_"),
                below_container(&Pointer::from_tokens(["resources", list])),
                expression(format!("resources.{list}")),
            );
            for name in names.keys() {
                patches.add(
                    &format!("for it in containers if {known} != _|_"),
                    below_container(&Pointer::from_tokens(["resources", list, name])),
                    expression(format!("resources.{list}.{}", label(name))),
                );
            }
        }
    }
    patches.declare(program);
}

/// The path of a field below a container, as an expression.
pub(super) fn below_container(place: &Pointer) -> String {
    let place = quote(&place.to_string());
    let (_, rest) = place.split_at(1);
    format!("\"\\(it.path){rest}")
}

/// Returns the amounts as text, by list and name. Amounts to remove are not validated.
fn amounts(
    resources: &ResourceRequirements,
    is_removed: bool,
    problems: &mut PolicyProblems,
) -> Vec<(&'static str, Map<String, Value>)> {
    let mut amounts = Vec::new();
    for (list, given) in [("limits", &resources.limits), ("requests", &resources.requests)] {
        let mut texts = Map::new();
        for (name, amount) in given {
            let text = match amount {
                IntOrString::Int(number) => number.to_string(),
                IntOrString::String(text) => text.clone(),
            };
            let field = format!("{list}[{name}]");
            if name.is_empty() {
                problems.note(&field, "has no name: name a resource, for example cpu");
            }
            if !is_removed {
                match Quantity::parse(&text) {
                    Ok(quantity) if quantity < Quantity::ZERO => {
                        problems.note(&field, format!("{text:?} is less than 0"));
                    }
                    Ok(quantity) => check_limit(resources, list, name, quantity, problems),
                    Err(error) => problems.note(&field, error),
                }
            }
            texts.insert(name.clone(), text.into());
        }
        if !texts.is_empty() {
            amounts.push((list, texts));
        }
    }
    if amounts.is_empty() {
        problems.note("", "is empty: give limits or requests");
    }
    amounts
}

/// Adds a problem for a request above its limit, which API servers reject.
fn check_limit(
    resources: &ResourceRequirements,
    list: &str,
    name: &str,
    amount: Quantity,
    problems: &mut PolicyProblems,
) {
    let limit = match resources.limits.get(name) {
        Some(IntOrString::Int(number)) => Quantity::parse(&number.to_string()),
        Some(IntOrString::String(text)) => Quantity::parse(text),
        None => return,
    };
    if list == "requests" && limit.is_ok_and(|limit| limit < amount) {
        problems.note(format!("{list}[{name}]"), "is more than the limit");
    }
}
