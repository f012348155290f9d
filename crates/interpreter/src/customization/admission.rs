//! Validation of customizations before they are written.

use serde_json::Value;
use windlass_object::object;

use super::{
    CustomizationProblem, CustomizationRules, FieldProblems,
    compiled_customization::CompiledCustomization,
    customization_object::{CustomizationKey, CustomizationObject},
};
use crate::{InterpretingMode, Operation};

/// Validates a new object of either kind, which replaces `old` if that exists, given the `others` of both
/// kinds.
///
/// Like Karmada, it rejects a second script for the same target and operation, except for dependencies, and a
/// script that does not compile. In addition, it rejects empty and repeated targets, invalid paths, invalid
/// declarative fields, `mode: Chain` for operations that do not chain, and scripts that are useless in a dry
/// run: they lack the function of their operation, cannot be loaded, or return an invalid answer for every
/// object. A script that fails because of a missing field in the dry run's objects is not rejected.
///
/// Two objects of either kind conflict if both replace, customize the same operation, and have a target for
/// the same kind with the same apiVersion, labelSelector, name and namespace. An object that chains never
/// conflicts.
///
/// An object whose spec does not change, or that is being deleted, is never rejected: its metadata must
/// remain writable.
///
/// # Errors
///
/// All problems, each with its field.
pub fn admit(new: &Value, old: Option<&Value>, others: &[Value]) -> Result<(), Vec<CustomizationProblem>> {
    let is_unchanged = old.is_some_and(|old| old.get("spec") == new.get("spec") && old.get("spec").is_some());
    if object::is_terminating(new) || is_unchanged {
        return Ok(());
    }
    let (read, mut problems) = CustomizationObject::read(CustomizationKey::from_object(new)?, new)?;
    let conflicts = conflicts(&read, others);
    let compiled = CompiledCustomization::compile_valid_parts(read, &mut problems);
    problems.extend(dry_run(&compiled));
    problems.extend(conflicts);
    problems.into_result(|| Some(()))
}

/// Returns the problems of the scripts that compile.
#[cfg(feature = "lua")]
fn dry_run(compiled: &CompiledCustomization) -> Vec<CustomizationProblem> {
    let mut problems = FieldProblems::under("spec.customizations");
    for (operation, interpreter) in &compiled.interpreters {
        let Some(script) = interpreter.script() else {
            continue;
        };
        if let Err(error) = super::dry_run::dry_run(script.program(), *operation) {
            let field = CustomizationRules::field(*operation);
            problems.add(format!("{field}.luaScript"), error);
        }
    }
    problems.into_problems()
}

#[cfg(not(feature = "lua"))]
fn dry_run(_: &CompiledCustomization) -> Vec<CustomizationProblem> {
    Vec::new()
}

fn conflicts(new: &CustomizationObject, others: &[Value]) -> Vec<CustomizationProblem> {
    let mut problems = FieldProblems::under("spec.customizations");
    if new.mode == InterpretingMode::Chain {
        return Vec::new();
    }
    for other in others {
        // Problems of other objects do not concern this one.
        let key = CustomizationKey::from_object(other)
            .ok()
            .filter(|key| *key != new.key);
        let Some(Ok((other, _))) = key.map(|key| CustomizationObject::read(key, other)) else {
            continue;
        };
        let targets = new.targets.iter();
        let has_same_target = targets
            .flat_map(|own| other.targets.iter().map(move |other| (own, other)))
            .any(|(own, other)| own.conflicts(other));
        if other.mode == InterpretingMode::Chain || !has_same_target {
            continue;
        }
        for operation in Operation::ALL {
            let may_be_multiple = operation == Operation::InterpretDependency;
            if !may_be_multiple && new.rules.has(operation) && other.rules.has(operation) {
                let message = format!(
                    "conflicts with {}, which customizes the same operation for the same target",
                    other.key
                );
                problems.add(CustomizationRules::field(operation), message);
            }
        }
    }
    problems.into_problems()
}
