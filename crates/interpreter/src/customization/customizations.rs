//! All customizations of a cluster, and the selection of those for an object.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt, future, mem,
    sync::Arc,
};

use parking_lot::RwLock;
use serde_json::Value;
use windlass_object::object;

use super::{
    CustomizationProblem, FieldProblems, OverruledCustomization,
    compiled_customization::{CompiledCustomization, CustomizationInterpreter},
    customization_object::{CustomizationKey, CustomizationObject},
    dependencies::merge_dependencies,
    overruled_customization::overruled,
    target::TargetSpecificity,
};
use crate::{
    Answer, Interpreter, InterpreterSource, InterpretingMode, Operation, Question,
    interpreter::{AnswerFuture, InterpreterFailure},
};

/// Compiled customizations.
///
/// # Guarantees
///
/// - All customizations are replaced atomically.
/// - If a change is invalid, the previous version of that customization stays in use, until the object is deleted.
/// - An invalid customization does not affect others.
/// - The selection does not depend on the order of the objects.
#[derive(Default)]
pub struct Customizations {
    set: RwLock<Arc<CustomizationSet>>,
}

/// Whether a customization is in use, and why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CustomizationState {
    /// The customization is in use.
    Used,
    /// The previous version is in use, because the current one is invalid for these reasons.
    Kept(Vec<CustomizationProblem>),
    /// The customization is not in use, because it is invalid for these reasons.
    Unusable(Vec<CustomizationProblem>),
}

#[derive(Default)]
struct CustomizationSet {
    known: BTreeMap<CustomizationKey, KnownCustomization>,
    /// Customizations by the kinds of their targets.
    by_kind: HashMap<String, Vec<Arc<CompiledCustomization>>>,
    /// Customizations with a target for any kind.
    any_kind: Vec<Arc<CompiledCustomization>>,
}

#[derive(Clone)]
struct KnownCustomization {
    /// The source object.
    spec: Value,
    compiled: Arc<CompiledCustomization>,
}

/// Interpreters with the same specificity, whose dependencies are united.
struct UnitedDependencies(Vec<Arc<CustomizationInterpreter>>);

impl Customizations {
    /// Replaces all customizations; returns the state of each, in the order of the objects. Unchanged objects
    /// are not compiled again.
    pub fn replace(&self, objects: &[Value]) -> Vec<CustomizationState> {
        let old = self.set.read().clone();
        let mut known = BTreeMap::new();
        let states = objects
            .iter()
            .map(|object| add(object, &old, &mut known))
            .collect();
        let new = Arc::new(CustomizationSet::new(known));
        // Drops the old set after the lock is released.
        let old = mem::replace(&mut *self.set.write(), new);
        drop(old);
        states
    }

    /// Returns the customizations that are not used for some objects because another one with the same
    /// specificity has precedence.
    pub fn overruled(&self) -> Vec<OverruledCustomization> {
        let set = self.set.read().clone();
        overruled(set.known.values().map(|known| &*known.compiled))
    }
}

impl InterpreterSource for Customizations {
    fn interpreters(&self, operation: Operation, object: &Value) -> Vec<Arc<dyn Interpreter>> {
        let set = self.set.read().clone();
        let mut candidates = set.candidates(operation, object);
        let mut interpreters: Vec<Arc<dyn Interpreter>> = Vec::new();
        if operation == Operation::InterpretDependency {
            let most = candidates.first().map(|(specificity, ..)| *specificity);
            let alike = candidates
                .iter()
                .take_while(|(specificity, ..)| Some(*specificity) == most);
            let alike = alike.count();
            if alike > 1 {
                let alike = candidates
                    .drain(..alike)
                    .map(|(_, interpreter)| interpreter.clone());
                interpreters.push(Arc::new(UnitedDependencies(alike.collect())));
            }
        }
        for (_, interpreter) in candidates {
            interpreters.push(interpreter.clone());
        }
        let replaces = |interpreter: &Arc<dyn Interpreter>| interpreter.mode() == InterpretingMode::Replace;
        if let Some(last) = interpreters.iter().position(replaces) {
            interpreters.truncate(last + 1);
        }
        interpreters
    }
}

impl fmt::Debug for Customizations {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = self.set.read();
        formatter
            .debug_set()
            .entries(set.known.keys().map(ToString::to_string))
            .finish()
    }
}

/// Adds an object, or its previous version if it is invalid.
fn add(
    object: &Value,
    old: &CustomizationSet,
    known: &mut BTreeMap<CustomizationKey, KnownCustomization>,
) -> CustomizationState {
    let key = match CustomizationKey::from_object(object) {
        Ok(key) => key,
        Err(problems) => return CustomizationState::Unusable(problems),
    };
    if known.contains_key(&key) {
        let mut problems = FieldProblems::default();
        problems.add("metadata.name", format!("duplicate {:?}", key.name));
        return CustomizationState::Unusable(problems.into_problems());
    }
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let before = old.known.get(&key);
    if let Some(before) = before.filter(|before| before.spec == *spec) {
        known.insert(key, before.clone());
        return CustomizationState::Used;
    }
    let read = CustomizationObject::read(key.clone(), object);
    let compiled = read.and_then(|(read, problems)| CompiledCustomization::compile(read, problems));
    match (compiled, before) {
        (Ok(compiled), _) => {
            let spec = spec.clone();
            let compiled = Arc::new(compiled);
            known.insert(key, KnownCustomization { spec, compiled });
            CustomizationState::Used
        }
        (Err(problems), Some(before)) => {
            known.insert(key, before.clone());
            CustomizationState::Kept(problems)
        }
        (Err(problems), None) => CustomizationState::Unusable(problems),
    }
}

impl CustomizationSet {
    fn new(known: BTreeMap<CustomizationKey, KnownCustomization>) -> Self {
        let mut by_kind = HashMap::<String, Vec<_>>::new();
        let mut any_kind = Vec::new();
        for customization in known.values().map(|known| &known.compiled) {
            let kinds = customization.targets.iter().map(|target| target.kinds.clone());
            // `None` if any target is for all kinds.
            match kinds.collect::<Option<Vec<_>>>() {
                None => any_kind.push(customization.clone()),
                Some(kinds) => {
                    for kind in kinds.into_iter().flatten().collect::<BTreeSet<_>>() {
                        by_kind.entry(kind).or_default().push(customization.clone());
                    }
                }
            }
        }
        Self {
            known,
            by_kind,
            any_kind,
        }
    }

    /// Returns the interpreters for an operation and an object, in the order of precedence.
    fn candidates(
        &self,
        operation: Operation,
        object: &Value,
    ) -> Vec<(TargetSpecificity, &Arc<CustomizationInterpreter>)> {
        let of_kind = object::text(object, "/kind").and_then(|kind| self.by_kind.get(kind));
        let mut candidates = Vec::new();
        for customization in of_kind.into_iter().flatten().chain(&self.any_kind) {
            let Some(interpreter) = customization.interpreters.get(&operation) else {
                continue;
            };
            let targets = customization.targets.iter();
            let Some(specificity) = targets.filter_map(|target| target.matches(object)).max() else {
                continue;
            };
            let replaces = customization.mode == InterpretingMode::Replace;
            let order = (Reverse(specificity), replaces, &customization.key);
            candidates.push((order, specificity, interpreter));
        }
        candidates.sort_by_key(|(order, ..)| *order);
        let candidates = candidates.into_iter();
        candidates
            .map(|(_, specificity, interpreter)| (specificity, interpreter))
            .collect()
    }
}

impl UnitedDependencies {
    fn answer(&self, question: Question<'_>) -> Result<Answer, InterpreterFailure> {
        let mut found = Vec::new();
        for interpreter in &self.0 {
            found.extend(interpreter.dependencies(question)?);
        }
        Ok(Answer::Dependency(merge_dependencies(found)?))
    }
}

impl Interpreter for UnitedDependencies {
    fn name(&self) -> String {
        let names: Vec<_> = self.0.iter().map(|interpreter| interpreter.name()).collect();
        names.join(", ")
    }

    fn mode(&self) -> InterpretingMode {
        let is_chain =
            |interpreter: &Arc<CustomizationInterpreter>| interpreter.mode() == InterpretingMode::Chain;
        match self.0.iter().all(is_chain) {
            true => InterpretingMode::Chain,
            false => InterpretingMode::Replace,
        }
    }

    fn interpret<'a>(&'a self, question: Question<'a>) -> AnswerFuture<'a> {
        Box::pin(future::ready(self.answer(question)))
    }
}
