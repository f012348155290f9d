//! Upgrades that would leave webhooks without a pod: new ones cannot come up beside those that serve now.

use serde_json::Value;
use windlass_object::{ObjectKey, text::Listing};

use super::{
    Phase,
    install_plan::Plan,
    preflight::{PreflightObservation, Refusal},
};
use crate::install::{canary, traffic::exclusion};

/// How a message lists what calls webhooks.
const CALLERS: Listing = Listing {
    most: 10,
    separator: ", ",
    way_to_rest: "",
};

/// The serving Deployments whose new pods cannot come up beside those that serve now: of the revision before, or of a Deployment
/// that goes.
pub(super) fn interruptions(scene: &PreflightObservation<'_>) -> Vec<Refusal> {
    let deployments = scene.plan.phases.of(Phase::Deployments);
    deployments
        .filter(|desired| scene.plan.is_serving(desired))
        .filter_map(|desired| {
            let deployment = ObjectKey::of(desired)?;
            let cause = scene
                .deployments
                .iter()
                .find_map(|live| interruption(scene, desired, live))?;
            Some(Refusal::Interruption {
                deployment,
                cause,
                needing: callers(scene.plan),
            })
        })
        .collect()
}

/// Why new pods of `desired` cannot come up beside those of `live`; `None` where they can, or need not, since these stay.
fn interruption(scene: &PreflightObservation<'_>, desired: &Value, live: &Value) -> Option<String> {
    let (key, other) = (ObjectKey::of(desired)?, ObjectKey::of(live)?);
    canary::revision(live)?;
    if canary::revision(live) == canary::revision(desired) || is_kept(scene.plan, live) {
        return None;
    }
    let cause = exclusion(desired, live)?;
    Some(if key == other {
        cause
    } else {
        format!("{cause} and so do those of {other}")
    })
}

/// Whether a Deployment stays as it is.
fn is_kept(plan: &Plan, live: &Value) -> bool {
    let (key, revision) = (ObjectKey::of(live), canary::revision(live));
    plan.phases
        .of(Phase::Deployments)
        .any(|desired| ObjectKey::of(desired) == key && canary::revision(desired) == revision)
}

/// What sends requests to webhooks.
fn callers(plan: &Plan) -> String {
    let admission = plan.phases.of(Phase::Admission).filter_map(ObjectKey::of);
    let conversions = plan
        .conversions
        .iter()
        .map(|conversion| format!("the conversion of {}", conversion.crd));
    let callers: Vec<_> = admission.map(|key| key.to_string()).chain(conversions).collect();
    CALLERS.of(&callers)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_bundle::render::{Conversion, ServingDefaults, WebhookCertificate};

    use super::*;
    use crate::install::plan::{Phases, preflight};

    /// A Deployment that serves webhooks on a port of its node.
    fn serving(name: &str, app: &str, image: &str, port: u16) -> Value {
        let mut deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "n"},
            "spec": {"selector": {"matchLabels": {"app": app}}, "template": {
                "metadata": {"labels": {"app": app}},
                "spec": {"containers": [{"image": image, "ports": [{"containerPort": 9443, "hostPort": port}]}]},
            }},
        });
        canary::stamp(&mut deployment);
        deployment
    }

    #[test]
    fn new_pods_that_no_node_has_a_port_for_are_refused_whatever_their_deployment_is_called() {
        let old = serving("d", "a", "1", 9443);
        let mut unlabelled = old.clone();
        unlabelled["spec"]["template"]["metadata"] = json!({});
        for (case, live, desired, expected) in [
            ("same", vec![&old], serving("d", "a", "1", 9443), None),
            (
                "another image",
                vec![&old],
                serving("d", "a", "2", 9443),
                Some("port 9443"),
            ),
            (
                "another selector",
                vec![&old],
                serving("d", "b", "1", 9443),
                Some("port 9443"),
            ),
            (
                "renamed",
                vec![&old],
                serving("e", "a", "1", 9443),
                Some("those of Deployment n/d"),
            ),
            ("another port", vec![&old], serving("d", "a", "1", 9444), None),
            (
                "renamed, another port",
                vec![&old],
                serving("e", "a", "1", 9444),
                None,
            ),
            ("new", vec![], serving("d", "a", "1", 9443), None),
            (
                "serves nothing",
                vec![&unlabelled],
                serving("e", "a", "1", 9443),
                None,
            ),
        ] {
            let plan = Plan {
                namespace: "n".into(),
                conversions: vec![Conversion {
                    crd: "widgets.example.com".into(),
                    namespace: "n".into(),
                    service: "s".into(),
                    port: 443,
                    path: "/convert".into(),
                    review_versions: vec!["v1".into()],
                }],
                self_managed: None,
                certificates: vec![WebhookCertificate {
                    service: "s".into(),
                    green: "s-green".into(),
                    secret: "s-cert".into(),
                    deployment: desired["metadata"]["name"].as_str().unwrap().into(),
                }],
                phases: Phases::new([desired]),
                serving: ServingDefaults::default(),
                examples: vec![],
                notices: vec![],
            };
            let refused = |allow_interruption| {
                let refusals = preflight(&PreflightObservation {
                    claimant: "mine",
                    plan: &plan,
                    adopt: &[],
                    claimants: &[],
                    live: &[],
                    crds: &[],
                    deployments: &live,
                    allow_interruption,
                });
                refusals.iter().map(ToString::to_string).collect::<Vec<_>>()
            };
            let messages = refused(false);
            assert_eq!(
                messages.len(),
                usize::from(expected.is_some()),
                "{case}: {messages:?}"
            );
            for part in expected
                .into_iter()
                .chain(["allowInterruption: true"])
                .take(2 * messages.len())
            {
                assert!(messages[0].contains(part), "{case}: {messages:?}");
            }
            assert_eq!(refused(true), [""; 0], "{case}");
        }
    }
}
