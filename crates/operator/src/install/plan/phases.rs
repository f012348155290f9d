//! The objects of an install, in the order in which they are applied.

use std::collections::HashMap;

use interpreter::answer::DependentObjectReference;
use serde_json::Value;
use windlass_bundle::Phase;
use windlass_object::{ObjectKey, object};

use super::dependency_order::dependency_order;

/// The objects of an install by phase.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Phases {
    objects: Vec<(Phase, Value)>,
}

impl Phases {
    /// Sorts objects into phases; within a phase they keep their order, but roles come before their bindings.
    pub fn new(objects: impl IntoIterator<Item = Value>) -> Self {
        let mut objects: Vec<_> = objects
            .into_iter()
            .map(|object| (Phase::for_kind(kind(&object)), object))
            .collect();
        objects.sort_by_key(|(phase, object)| (*phase, kind(object).ends_with("RoleBinding")));
        Self { objects }
    }

    /// The same with the objects of each phase after those that they depend on; `None` where they are already.
    pub fn in_dependency_order(
        &self,
        dependencies: &HashMap<ObjectKey, Vec<DependentObjectReference>>,
    ) -> Option<Self> {
        let mut objects = Vec::with_capacity(self.objects.len());
        let mut is_other = false;
        for of_phase in self.objects.chunk_by(|(one, _), (other, _)| one == other) {
            let values: Vec<_> = of_phase.iter().map(|(_, object)| object).collect();
            let needs = |object: &&Value| {
                let known = ObjectKey::from_object(object).and_then(|key| dependencies.get(&key));
                known.map_or(&[][..], Vec::as_slice)
            };
            let needs: Vec<_> = values.iter().map(needs).collect();
            let order = dependency_order(&values, &needs);
            is_other |= !order.is_sorted();
            objects.extend(order.into_iter().map(|place| of_phase[place].clone()));
        }
        is_other.then_some(Self { objects })
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

    #[test]
    fn objects_of_one_phase_come_after_what_they_depend_on() {
        let object = |kind: &str, name: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"namespace": "n", "name": name}});
        let phases = Phases::new([
            object("Service", "s"),
            object("ConfigMap", "a"),
            object("Secret", "b"),
        ]);
        let on = |name: &str| DependentObjectReference {
            api_version: "v1".to_owned(),
            kind: "Secret".to_owned(),
            namespace: Some("n".to_owned()),
            name: Some(name.to_owned()),
            label_selector: None,
        };
        let key = |kind: &str, name: &str| ObjectKey::from_object(&object(kind, name)).unwrap();
        let needs = HashMap::from([
            (key("ConfigMap", "a"), vec![on("b")]),
            (key("Service", "s"), vec![on("b")]),
        ]);
        let ordered = phases.in_dependency_order(&needs).unwrap();
        let order: Vec<_> = ordered.all().map(kind).collect();
        assert_eq!(order, ["Secret", "ConfigMap", "Service"]);
        assert_eq!(ordered.in_dependency_order(&needs), None);
        assert_eq!(phases.in_dependency_order(&HashMap::new()), None);
    }
}
