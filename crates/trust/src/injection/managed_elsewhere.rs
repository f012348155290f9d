//! Targets whose CA bundle somebody else writes: two writers would take turns forever.

use serde_json::Value;
use thiserror::Error;
use windlass_object::ca_injectors::OTHER_CA_INJECTORS;

use super::annotation::spoken_annotation;

/// Somebody else writes a target's CA bundle.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{manager} is also requested to inject the CA bundle: remove the annotation {annotation} or that of Windlass"
)]
pub struct ManagedElsewhere {
    /// The program that answers the annotation.
    pub manager: &'static str,
    /// The annotation that asks for it.
    pub annotation: &'static str,
}

// === impl ManagedElsewhere ===

impl ManagedElsewhere {
    /// Looks whether `target` asks somebody else.
    ///
    /// # Errors
    ///
    /// When it does.
    pub fn check(target: &Value) -> Result<(), Self> {
        let other = OTHER_CA_INJECTORS.iter().find(|injector| {
            spoken_annotation(target, injector.annotation).is_some_and(|value| value != "false")
        });
        other.map_or(Ok(()), |injector| {
            Err(Self {
                manager: injector.name,
                annotation: injector.annotation,
            })
        })
    }
}
