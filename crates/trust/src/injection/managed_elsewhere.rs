//! Targets whose CA bundle another controller writes: two writers would overwrite each other forever.

use serde_json::Value;
use thiserror::Error;
use windlass_object::ca_injectors::CaInjector;

use super::kinds::TargetKinds;

/// Another controller writes the CA bundle of a target.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the message explains each field")]
pub enum ManagedElsewhere {
    /// The target requests injection from both.
    #[error(
        "{injector} is also requested to inject the CA bundle: remove the annotation {annotation} or that of Windlass"
    )]
    Both {
        /// The other controller.
        injector: CaInjector,
        annotation: &'static str,
    },
    /// The target requests injection from a CA injector that Windlass replaces, but that is running.
    #[error(
        "{injector} is running and handles the annotation {annotation} itself: stop it, or remove the annotation"
    )]
    AtWork {
        /// The other controller.
        injector: CaInjector,
        annotation: &'static str,
    },
}

impl ManagedElsewhere {
    /// Checks whether another controller writes the CA bundle of `target`.
    ///
    /// # Errors
    ///
    /// If one does.
    pub fn check(target: &Value, kinds: &TargetKinds) -> Result<(), Self> {
        for injector in CaInjector::ALL {
            let Some(annotation) = injector.annotation_on(target) else {
                continue;
            };
            if !kinds.replaced_injectors().contains(&injector) {
                return Err(Self::Both { injector, annotation });
            }
            if kinds.running_injectors().contains(&injector) {
                return Err(Self::AtWork { injector, annotation });
            }
        }
        Ok(())
    }
}
