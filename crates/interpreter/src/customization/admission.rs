//! Whether a customization may be written.

use serde_json::Value;
use windlass_object::object;

use super::{
    CustomizationProblem, CustomizationRules, FieldProblems,
    compile::CompiledCustomization,
    read::{CustomizationKey, CustomizationObject},
};
use crate::{InterpretingMode, Operation};

/// Whether an object of either kind may be written, in place of `old` where it was there before, beside `others` of both kinds.
///
/// Refused is, as by Karmada, a second script for the same target and operation, but for dependencies, and a script that does not
/// compile. Beyond that: empty and repeated targets, paths that are none, declared answers that cannot be read, `mode: Chain` for what
/// does not chain, and scripts that a dry run shows to be useless: they lack the function of their operation, or cannot be loaded, or
/// whatever the object return what is no answer. A script that fails for want of a field in the dry run's objects is not refused.
///
/// Of the two kinds, an object conflicts with another where both replace, have something for the same operation, and have a target for
/// the same kind with the same apiVersion, labelSelector, name and namespace. An object that chains conflicts with none.
///
/// An object whose spec does not change, or that is being deleted, is never refused: its metadata must remain writable.
///
/// # Errors
///
/// With all that is wrong, each with its field.
pub fn admit(new: &Value, old: Option<&Value>, others: &[Value]) -> Result<(), Vec<CustomizationProblem>> {
    let is_unchanged = old.is_some_and(|old| old.get("spec") == new.get("spec") && old.get("spec").is_some());
    if object::is_terminating(new) || is_unchanged {
        return Ok(());
    }
    let (read, mut problems) = CustomizationObject::read(CustomizationKey::of(new)?, new)?;
    let conflicts = conflicts(&read, others);
    let compiled = CompiledCustomization::compile_some(read, &mut problems);
    problems.extend(dry_run(&compiled));
    problems.extend(conflicts);
    problems.or(|| Some(()))
}

/// What speaks against the scripts that could be compiled.
#[cfg(feature = "lua")]
fn dry_run(compiled: &CompiledCustomization) -> Vec<CustomizationProblem> {
    let mut problems = FieldProblems::below("spec.customizations");
    for (operation, interpreter) in &compiled.interpreters {
        let Some(script) = interpreter.script() else {
            continue;
        };
        if let Err(error) = super::dry_run::dry_run(script.program(), *operation) {
            let field = CustomizationRules::field(*operation);
            problems.note(format!("{field}.luaScript"), error);
        }
    }
    problems.into_problems()
}

#[cfg(not(feature = "lua"))]
fn dry_run(_: &CompiledCustomization) -> Vec<CustomizationProblem> {
    Vec::new()
}

/// Those that answer the same for the same objects.
fn conflicts(new: &CustomizationObject, others: &[Value]) -> Vec<CustomizationProblem> {
    let mut problems = FieldProblems::below("spec.customizations");
    if new.mode == InterpretingMode::Chain {
        return Vec::new();
    }
    for other in others {
        // What is wrong with others is none of this object's business.
        let key = CustomizationKey::of(other).ok().filter(|key| *key != new.key);
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
                let message = format!("conflicts with {}, which has it for the same target", other.key);
                problems.note(CustomizationRules::field(operation), message);
            }
        }
    }
    problems.into_problems()
}
