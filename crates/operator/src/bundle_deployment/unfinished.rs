//! Deployments that another pod template would cut off.

use serde_json::Value;
use windlass_object::ObjectKey;

use super::rollout_status::RolloutStatus;
use crate::install::{
    canary::revision,
    plan::{Phase, Plan},
    traffic::is_held,
};

/// A Deployment that another pod template would cut off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unfinished {
    /// Which one.
    pub(super) key: ObjectKey,
    /// That of its newest pods.
    pub(super) revision: String,
    /// How far it is, where it is not held any more.
    pub(super) released: Option<RolloutStatus>,
}

impl Unfinished {
    pub(super) fn of(live: &Value) -> Option<Self> {
        Some(Self {
            key: ObjectKey::from_object(live)?,
            revision: revision(live)?.to_owned(),
            released: (!is_held(live)).then(|| RolloutStatus::of(live)),
        })
    }

    /// Whether webhooks can go from its pods to those of `next` at once. Where old pods are let go already, they cannot.
    pub(super) fn gives_way_to(&self, next: &Plan, has_pods: impl Fn(&Value) -> bool) -> bool {
        let mut deployments = next.phases.of(Phase::Deployments);
        let same = deployments.find(|desired| ObjectKey::from_object(desired).as_ref() == Some(&self.key));
        self.released.is_none()
            && match same {
                Some(desired) => has_pods(desired),
                None => next.phases.of(Phase::Deployments).any(has_pods),
            }
    }
}

/// What another pod template would cut off, but what is of `next`.
pub(super) fn unfinished<'a>(
    deployments: impl IntoIterator<Item = &'a Value>,
    installed: Option<&Plan>,
    next: &Plan,
) -> impl Iterator<Item = Unfinished> {
    deployments
        .into_iter()
        .filter(move |live| is_unfinished(live, installed))
        .filter_map(Unfinished::of)
        .filter(|begun| !has_revision(next, &begun.revision))
}

/// Whether a Deployment has pods of an older template beside those of its newest one, or may have. One that is as it was
/// installed keeps those that are ready, whatever takes its place: somebody has scaled or restarted it.
fn is_unfinished(live: &Value, installed: Option<&Plan>) -> bool {
    if is_held(live) {
        return true;
    }
    let count = |pointer: &str| live.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    let is_installed =
        installed.is_some_and(|plan| revision(live).is_some_and(|revision| has_revision(plan, revision)));
    let may_have_others = count("/status/observedGeneration") < count("/metadata/generation")
        || count("/status/replicas") > count("/status/updatedReplicas");
    !is_installed && may_have_others && matches!(RolloutStatus::of(live), RolloutStatus::Running(_))
}

/// Whether a plan has a Deployment of a revision.
pub(super) fn has_revision(plan: &Plan, revision: &str) -> bool {
    plan.phases
        .of(Phase::Deployments)
        .any(|deployment| self::revision(deployment) == Some(revision))
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;
    use windlass_bundle::render::ServingDefaults;

    use super::*;
    use crate::install::{canary::stamp, plan::Phases, traffic::held};

    pub(in crate::bundle_deployment) fn deployment(name: &str, image: &str) -> Value {
        let mut deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "n"},
            "spec": {"template": {"spec": {"containers": [{"image": image}]}}},
        });
        stamp(&mut deployment);
        deployment
    }

    fn plan(deployments: impl IntoIterator<Item = Value>) -> Plan {
        Plan {
            namespace: "n".into(),
            phases: Phases::new(deployments),
            conversions: vec![],
            self_managed: None,
            certificates: vec![],
            serving: ServingDefaults::default(),
            examples: vec![],
            notices: vec![],
        }
    }

    #[test]
    fn webhooks_go_from_a_deployment_only_to_pods_of_the_same_one() {
        let begun = Unfinished::of(&held(&deployment("a", "2"))).unwrap();
        let released = Unfinished::of(&deployment("a", "2")).unwrap();
        let (a, b) = (deployment("a", "3"), deployment("b", "1"));
        for (next, ready, expected) in [
            (vec![a.clone()], vec!["a"], true),
            (vec![a.clone()], vec![], false),
            // The pods of the other one do not answer for it.
            (vec![a.clone(), b.clone()], vec!["b"], false),
            (vec![a, b.clone()], vec!["a"], true),
            // It is dropped, and its template stays as it is until nobody calls it.
            (vec![b.clone()], vec!["b"], true),
            (vec![b], vec![], false),
        ] {
            let next = plan(next);
            let has_pods = |desired: &Value| ready.iter().any(|name| desired["metadata"]["name"] == *name);
            assert_eq!(
                begun.gives_way_to(&next, has_pods),
                expected,
                "{next:?} {ready:?}"
            );
            assert!(!released.gives_way_to(&next, has_pods));
        }
    }

    #[test]
    fn what_is_installed_and_scaled_is_not_unfinished() {
        let status = |mut live: Value, observed: i64, replicas: i64, updated: i64| {
            live["metadata"]["generation"] = 2.into();
            live["status"] =
                json!({"observedGeneration": observed, "replicas": replicas, "updatedReplicas": updated});
            live
        };
        let (old, new) = (deployment("a", "1"), deployment("a", "2"));
        let installed = plan([old.clone()]);
        for (live, expected) in [
            (status(old.clone(), 1, 2, 2), false),
            // Somebody has restarted it.
            (status(old, 2, 4, 2), false),
            (status(new.clone(), 1, 2, 2), true),
            (status(new.clone(), 2, 4, 2), true),
            (status(new.clone(), 2, 2, 2), false),
            (held(&status(new, 2, 2, 2)), true),
        ] {
            assert_eq!(is_unfinished(&live, Some(&installed)), expected, "{live}");
        }
    }
}
