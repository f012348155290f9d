//! Which customizations are not asked, since another one counts more that is for the same objects.

use std::{collections::HashMap, fmt};

use super::compile::CompiledCustomization;
use crate::{InterpretingMode, Operation};

/// A customization that is not asked about some objects, as closely as its target fits them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverruledCustomization {
    /// Which, for example `ResourceInterpretation databases`.
    pub customization: String,
    /// By whom.
    pub by: String,
    /// What it is not asked.
    pub operations: Vec<Operation>,
}

// === impl OverruledCustomization ===

/// For people.
impl fmt::Display for OverruledCustomization {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operations: Vec<_> = self.operations.iter().map(|operation| operation.name()).collect();
        let (operations, by) = (operations.join(", "), &self.by);
        write!(
            formatter,
            "is not asked {operations} of objects that {by} is asked about, whose target is as specific and which counts more by its name"
        )
    }
}

/// Those of some customizations that are overruled by others, which come before them; of each operation by the first.
pub(super) fn overruled<'a>(
    customizations: impl Iterator<Item = &'a CompiledCustomization>,
) -> Vec<OverruledCustomization> {
    let mut found = Vec::new();
    // By kind; none for those with a target for any.
    let mut earlier = HashMap::<Option<&str>, Vec<&CompiledCustomization>>::new();
    // What those say that chain is put together.
    let replacing = customizations.filter(|customization| customization.mode == InterpretingMode::Replace);
    for customization in replacing {
        let kinds: Vec<_> = customization.kinds().collect();
        let mut own: Vec<OverruledCustomization> = Vec::new();
        // So is what several depend on.
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

// === impl CompiledCustomization ===

impl CompiledCustomization {
    /// The kinds that its targets name; none where one is for any.
    fn kinds(&self) -> impl Iterator<Item = Option<&str>> {
        self.targets.iter().flat_map(|target| match &target.kinds {
            None => vec![None],
            Some(kinds) => kinds.iter().map(|kind| Some(kind.as_str())).collect(),
        })
    }

    /// Whether both are for objects that they fit as closely.
    fn conflicts(&self, other: &Self) -> bool {
        let mut targets = self.targets.iter();
        targets.any(|target| other.targets.iter().any(|other| target.conflicts(other)))
    }
}
