//! The objects of an install, in the order in which they are applied.

use serde_json::Value;
use windlass_bundle::Phase;
use windlass_object::object;

/// The objects of an install by phase.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Phases {
    objects: Vec<(Phase, Value)>,
}

// === impl Phases ===

impl Phases {
    /// Sorts objects into phases; within a phase they keep their order, but roles come before their bindings.
    pub fn new(objects: impl IntoIterator<Item = Value>) -> Self {
        let mut objects: Vec<_> = objects
            .into_iter()
            .map(|object| (Phase::of(kind(&object)), object))
            .collect();
        objects.sort_by_key(|(phase, object)| (*phase, kind(object).ends_with("RoleBinding")));
        Self { objects }
    }

    /// The objects of a phase.
    pub fn of(&self, phase: Phase) -> impl Iterator<Item = &Value> {
        self.objects
            .iter()
            .filter(move |(of, _)| *of == phase)
            .map(|(_, object)| object)
    }

    /// All objects, first to last.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = &Value> {
        self.objects.iter().map(|(_, object)| object)
    }
}

fn kind(object: &Value) -> &str {
    object::text(object, "/kind").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_bundle::BundledKind;
    use windlass_trust::injection::KINDS;

    use super::*;

    #[test]
    fn what_calls_servers_of_a_bundle_can_carry_a_trust_bundle() {
        for bundled in BundledKind::ALL
            .iter()
            .filter(|kind| kind.phase == Phase::Callers)
        {
            let is_it = KINDS.iter().any(|target| {
                (&*target.api_version(), &*target.kind, &*target.plural)
                    == (bundled.api_version, bundled.kind, bundled.plural)
            });
            assert!(is_it, "{}", bundled.kind);
        }
    }

    #[test]
    fn certificates_come_before_crds_and_deployments_after_them() {
        let kinds = [
            "ValidatingWebhookConfiguration",
            "Deployment",
            "CustomResourceDefinition",
            "ClusterRoleBinding",
            "ClusterRole",
            "ServingCertificate",
            "PodDisruptionBudget",
            "Service",
            "ServiceAccount",
        ];
        let phases = Phases::new(kinds.map(|kind| json!({"kind": kind})));
        let order: Vec<_> = phases.all().map(kind).collect();
        assert_eq!(
            order,
            [
                "ClusterRole",
                "ServiceAccount",
                "ClusterRoleBinding",
                "PodDisruptionBudget",
                "Service",
                "ServingCertificate",
                "CustomResourceDefinition",
                "Deployment",
                "ValidatingWebhookConfiguration",
            ]
        );
        assert_eq!(phases.of(Phase::Identity).count(), 3);
    }
}
