//! From objects, whatever is in them, to customizations.

use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::Value;
use windlass_object::{json::drop_nulls, object};

use super::{
    CustomizationProblem, CustomizationRules, FieldProblems, INTERPRETATION_API_VERSION, InterpretationMode,
    KARMADA_API_VERSION, ResourceInterpretationSpec, ResourceInterpreterCustomizationSpec,
    target::TargetMatcher,
};
use crate::InterpretingMode;

/// A customization of either kind, as far as it could be read.
#[derive(Clone, Debug)]
pub(crate) struct CustomizationObject {
    pub(crate) key: CustomizationKey,
    pub(crate) targets: Vec<TargetMatcher>,
    pub(crate) mode: InterpretingMode,
    pub(crate) rules: CustomizationRules,
}

/// Which object. They are in the order in which they count.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CustomizationKey {
    pub(crate) name: String,
    pub(crate) kind: CustomizationKind,
}

/// The kinds of objects that hold customizations, the one that counts more first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CustomizationKind {
    ResourceInterpreterCustomization,
    ResourceInterpretation,
}

// === impl CustomizationKey ===

impl CustomizationKey {
    /// Which an object is.
    ///
    /// # Errors
    ///
    /// When it is of another kind or has no name.
    pub(crate) fn of(object: &Value) -> Result<Self, Vec<CustomizationProblem>> {
        let mut problems = FieldProblems::default();
        let text = |pointer| object::text(object, pointer).unwrap_or_default();
        let kind = match (text("/apiVersion"), text("/kind")) {
            (KARMADA_API_VERSION, "ResourceInterpreterCustomization") => {
                Some(CustomizationKind::ResourceInterpreterCustomization)
            }
            (INTERPRETATION_API_VERSION, "ResourceInterpretation") => {
                Some(CustomizationKind::ResourceInterpretation)
            }
            _ => {
                let message = format!(
                    "must be ResourceInterpreterCustomization of {KARMADA_API_VERSION} or ResourceInterpretation of {INTERPRETATION_API_VERSION}"
                );
                problems.note("kind", message);
                None
            }
        };
        let name = text("/metadata/name").to_owned();
        if name.is_empty() {
            problems.note("metadata.name", "must not be empty");
        }
        problems.or(|| kind.map(|kind| Self { name, kind }))
    }
}

/// As an object is named where it fails.
impl fmt::Display for CustomizationKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            CustomizationKind::ResourceInterpreterCustomization => "ResourceInterpreterCustomization",
            CustomizationKind::ResourceInterpretation => "ResourceInterpretation",
        };
        write!(formatter, "{kind} {}", self.name)
    }
}

// === impl CustomizationObject ===

impl CustomizationObject {
    /// Reads an object, and tells what is wrong with what could be read of it.
    ///
    /// # Errors
    ///
    /// When a field is of another type.
    pub(crate) fn read(
        key: CustomizationKey,
        object: &Value,
    ) -> Result<(Self, FieldProblems), Vec<CustomizationProblem>> {
        let mut problems = FieldProblems::below("spec");
        let mut spec = object.get("spec").cloned().unwrap_or(Value::Null);
        // What is null is absent to an API server.
        drop_nulls(&mut spec);
        let (targets, mode, rules) = match key.kind {
            CustomizationKind::ResourceInterpreterCustomization => {
                let spec: ResourceInterpreterCustomizationSpec = typed(spec)?;
                let target = TargetMatcher::of_kind(&spec.target, &mut problems);
                (vec![target], InterpretingMode::Replace, spec.customizations)
            }
            CustomizationKind::ResourceInterpretation => {
                let spec: ResourceInterpretationSpec = typed(spec)?;
                let targets = targets(&spec, &mut problems);
                let mode = match spec.mode {
                    InterpretationMode::Replace => InterpretingMode::Replace,
                    InterpretationMode::Chain => InterpretingMode::Chain,
                };
                (targets, mode, spec.customizations)
            }
        };
        let read = Self {
            key,
            targets,
            mode,
            rules,
        };
        Ok((read, problems))
    }
}

/// The fields of a spec.
///
/// # Errors
///
/// When one is of another type.
pub(super) fn typed<T: DeserializeOwned>(spec: Value) -> Result<T, Vec<CustomizationProblem>> {
    let problem = |error: serde_path_to_error::Error<serde_json::Error>| {
        let path = error.path().to_string();
        let mut problems = FieldProblems::below("spec");
        let name = if path == "." { "" } else { path.as_str() };
        problems.note(name, error.inner());
        problems.into_problems()
    };
    serde_path_to_error::deserialize(spec).map_err(problem)
}

fn targets(spec: &ResourceInterpretationSpec, problems: &mut FieldProblems) -> Vec<TargetMatcher> {
    if spec.targets.is_empty() {
        problems.note("targets", "must not be empty");
    }
    let mut targets: Vec<TargetMatcher> = Vec::new();
    for (index, target) in spec.targets.iter().enumerate() {
        let target = TargetMatcher::of(target, index, problems);
        if let Some(earlier) = targets.iter().position(|earlier| earlier.conflicts(&target)) {
            let message = format!("is for objects that targets[{earlier}] is for");
            problems.note(format!("targets[{index}]"), message);
        }
        targets.push(target);
    }
    targets
}
