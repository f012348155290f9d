//! Reads customizations from objects.

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

/// A customization of either kind with its valid parts.
#[derive(Clone, Debug)]
pub(crate) struct CustomizationObject {
    pub(crate) key: CustomizationKey,
    pub(crate) targets: Vec<TargetMatcher>,
    pub(crate) mode: InterpretingMode,
    pub(crate) rules: CustomizationRules,
}

/// Identifies a customization. The order of keys is the order of precedence.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CustomizationKey {
    pub(crate) name: String,
    pub(crate) kind: CustomizationKind,
}

/// The kinds of customizations, in the order of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CustomizationKind {
    ResourceInterpreterCustomization,
    ResourceInterpretation,
}

impl CustomizationKey {
    /// Returns the key of an object.
    ///
    /// # Errors
    ///
    /// When the object is of another kind or has no name.
    pub(crate) fn from_object(object: &Value) -> Result<Self, Vec<CustomizationProblem>> {
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
                problems.add("kind", message);
                None
            }
        };
        let name = text("/metadata/name").to_owned();
        if name.is_empty() {
            problems.add("metadata.name", "must not be empty");
        }
        problems.into_result(|| kind.map(|kind| Self { name, kind }))
    }
}

/// Formats the kind and name as in error messages.
impl fmt::Display for CustomizationKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            CustomizationKind::ResourceInterpreterCustomization => "ResourceInterpreterCustomization",
            CustomizationKind::ResourceInterpretation => "ResourceInterpretation",
        };
        write!(formatter, "{kind} {}", self.name)
    }
}

impl CustomizationObject {
    /// Reads an object; returns its valid parts and the problems of the others.
    ///
    /// # Errors
    ///
    /// When a field has the wrong type.
    pub(crate) fn read(
        key: CustomizationKey,
        object: &Value,
    ) -> Result<(Self, FieldProblems), Vec<CustomizationProblem>> {
        let mut problems = FieldProblems::under("spec");
        let mut spec = object.get("spec").cloned().unwrap_or(Value::Null);
        // API servers treat null as absent.
        drop_nulls(&mut spec);
        let (targets, mode, rules) = match key.kind {
            CustomizationKind::ResourceInterpreterCustomization => {
                let spec: ResourceInterpreterCustomizationSpec = decode(spec)?;
                let target = TargetMatcher::from_customization_target(&spec.target, &mut problems);
                (vec![target], InterpretingMode::Replace, spec.customizations)
            }
            CustomizationKind::ResourceInterpretation => {
                let spec: ResourceInterpretationSpec = decode(spec)?;
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

/// Decodes a spec.
///
/// # Errors
///
/// When a field has the wrong type.
pub(super) fn decode<T: DeserializeOwned>(spec: Value) -> Result<T, Vec<CustomizationProblem>> {
    let problem = |error: serde_path_to_error::Error<serde_json::Error>| {
        let path = error.path().to_string();
        let mut problems = FieldProblems::under("spec");
        let name = if path == "." { "" } else { path.as_str() };
        problems.add(name, error.inner());
        problems.into_problems()
    };
    serde_path_to_error::deserialize(spec).map_err(problem)
}

fn targets(spec: &ResourceInterpretationSpec, problems: &mut FieldProblems) -> Vec<TargetMatcher> {
    if spec.targets.is_empty() {
        problems.add("targets", "must not be empty");
    }
    let mut targets: Vec<TargetMatcher> = Vec::new();
    for (index, target) in spec.targets.iter().enumerate() {
        let target = TargetMatcher::from_target(target, index, problems);
        if let Some(earlier) = targets.iter().position(|earlier| earlier.conflicts(&target)) {
            let message = format!("selects the same objects as targets[{earlier}]");
            problems.add(format!("targets[{index}]"), message);
        }
        targets.push(target);
    }
    targets
}
