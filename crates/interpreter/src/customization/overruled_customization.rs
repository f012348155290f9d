//! Customizations that are not used for some objects because another one has precedence.

use std::{collections::HashMap, fmt};

use super::compiled_customization::CompiledCustomization;
use crate::{InterpretingMode, Operation};

/// A customization that is not used for some objects, although its target is as specific as that of the used
/// one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverruledCustomization {
    /// The customization, for example `ResourceInterpretation databases`.
    pub customization: String,
    /// The customization that is used.
    pub by: String,
    /// The affected operations.
    pub operations: Vec<Operation>,
}

/// Formats a log message.
impl fmt::Display for OverruledCustomization {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operations: Vec<_> = self.operations.iter().map(|operation| operation.name()).collect();
        let (operations, by) = (operations.join(", "), &self.by);
        write!(
            formatter,
            "is not used for {operations} of objects that {by} also selects: both targets are equally specific, and {by} has precedence by name"
        )
    }
}

/// Returns the customizations that an earlier one overrules; for each operation the first one.
pub(super) fn overruled<'a>(
    customizations: impl Iterator<Item = &'a CompiledCustomization>,
) -> Vec<OverruledCustomization> {
    let mut found = Vec::new();
    // By kind; `None` for targets of any kind.
    let mut earlier = HashMap::<Option<&str>, Vec<&CompiledCustomization>>::new();
    // Answers of chained customizations are combined.
    let replacing = customizations.filter(|customization| customization.mode == InterpretingMode::Replace);
    for customization in replacing {
        let kinds: Vec<_> = customization.kinds().collect();
        let mut own: Vec<OverruledCustomization> = Vec::new();
        // Dependencies are united, too.
        let operations = customization.interpreters.keys();
        for operation in operations.filter(|operation| **operation != Operation::InterpretDependency) {
            let overrules = |other: &&&CompiledCustomization| {
                other.interpreters.contains_key(operation) && customization.conflicts(other)
            };
            let of_kinds = kinds
                .iter()
                .filter_map(|kind| earlier.get(kind)?.iter().find(overrules));
            let Some(by) = of_kinds.min_by_key(|other| &other.key) else {
                continue;
            };
            let by = by.key.to_string();
            match own.iter_mut().find(|known| known.by == by) {
                Some(known) => known.operations.push(*operation),
                None => own.push(OverruledCustomization {
                    customization: customization.key.to_string(),
                    by,
                    operations: vec![*operation],
                }),
            }
        }
        found.extend(own);
        for kind in kinds {
            earlier.entry(kind).or_default().push(customization);
        }
    }
    found
}

impl CompiledCustomization {
    /// The kinds that the customization targets; `None` for any kind.
    fn kinds(&self) -> impl Iterator<Item = Option<&str>> {
        self.targets.iter().flat_map(|target| match &target.kinds {
            None => vec![None],
            Some(kinds) => kinds.iter().map(|kind| Some(kind.as_str())).collect(),
        })
    }

    /// Reports whether both select the same objects with the same specificity.
    fn conflicts(&self, other: &Self) -> bool {
        let mut targets = self.targets.iter();
        targets.any(|target| other.targets.iter().any(|other| target.conflicts(other)))
    }
}
