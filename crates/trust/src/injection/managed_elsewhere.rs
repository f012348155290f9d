//! Targets whose CA bundle somebody else writes: two writers would take turns forever.

use serde_json::Value;
use thiserror::Error;

use super::spoken_annotation;

/// Annotations with which targets ask others for a CA bundle, and whom.
const OTHERS: &[(&str, &str)] = &[
    ("cert-manager.io/inject-ca-from", "cert-manager"),
    ("cert-manager.io/inject-ca-from-secret", "cert-manager"),
    ("cert-manager.io/inject-apiserver-ca", "cert-manager"),
    (
        "service.beta.openshift.io/inject-cabundle",
        "OpenShift's service-ca",
    ),
    (
        "service.alpha.openshift.io/inject-cabundle",
        "OpenShift's service-ca",
    ),
    ("runtime.cluster.x-k8s.io/inject-ca-from-secret", "Cluster API"),
];

/// Somebody else writes a target's CA bundle.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{manager} is asked for the CA bundle too: remove the annotation {annotation}, or ours")]
pub struct ManagedElsewhere {
    /// Who.
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
        for &(annotation, manager) in OTHERS {
            if spoken_annotation(target, annotation).is_some_and(|value| value != "false") {
                return Err(Self { manager, annotation });
            }
        }
        Ok(())
    }
}
