//! Targets whose CA bundle somebody else writes: two writers would take turns forever.

use serde_json::Value;
use thiserror::Error;
use windlass_object::ca_injectors::CaInjector;

use super::kinds::TargetKinds;

/// Somebody else writes a target's CA bundle.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ManagedElsewhere {
    /// The target asks both.
    #[error(
        "{injector} is also requested to inject the CA bundle: remove the annotation {annotation} or that of Windlass"
    )]
    Both {
        /// The program that answers the annotation.
        injector: CaInjector,
        /// The annotation that asks for it.
        annotation: &'static str,
    },
    /// The target asks one that we stand in for, and that is at work nevertheless.
    #[error(
        "{injector} is at work and answers the annotation {annotation} itself: stop it, or remove the annotation"
    )]
    AtWork {
        /// The program that answers the annotation.
        injector: CaInjector,
        /// The annotation that asks for it.
        annotation: &'static str,
    },
}

// === impl ManagedElsewhere ===

impl ManagedElsewhere {
    /// Looks whether `target` asks somebody else.
    ///
    /// # Errors
    ///
    /// When it does.
    pub fn check(target: &Value, kinds: &TargetKinds) -> Result<(), Self> {
        for injector in CaInjector::ALL {
            let Some(annotation) = injector.asked_by(target) else {
                continue;
            };
            if !kinds.answered().contains(&injector) {
                return Err(Self::Both { injector, annotation });
            }
            if kinds.at_work().contains(&injector) {
                return Err(Self::AtWork { injector, annotation });
            }
        }
        Ok(())
    }
}
