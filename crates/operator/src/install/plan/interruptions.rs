//! Upgrades that would leave webhooks without a pod: new ones cannot come up beside those that serve now.

use serde_json::Value;
use windlass_object::{ObjectKey, text::Listing};

use super::{Phase, install_plan::Plan};
use crate::install::{canary, traffic::exclusion};

/// How a message lists what calls webhooks.
const CALLERS: Listing = Listing {
    most: 10,
    separator: ", ",
    way_to_rest: "",
};

/// A Deployment whose new pods cannot come up beside those that serve now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interruption {
    /// The Deployment of the new pods.
    pub deployment: ObjectKey,
    /// Why they cannot.
    pub cause: String,
    /// What fails meanwhile.
    pub needing: String,
}

/// Returns the interruptions of webhooks that a plan causes because its pods cannot run together with those
/// of the `installed` Deployments.
pub(super) fn interruptions(plan: &Plan, installed: &[&Value]) -> Vec<Interruption> {
    let deployments = plan.phases.of(Phase::Deployments);
    deployments
        .filter(|desired| plan.is_serving(desired))
        .filter_map(|desired| {
            Some(Interruption {
                deployment: ObjectKey::from_object(desired)?,
                cause: installed.iter().find_map(|live| cause(plan, desired, live))?,
                needing: callers(plan),
            })
        })
        .collect()
}

/// Why new pods of `desired` cannot come up beside those of `live`; `None` where they can, or need not, since these stay.
fn cause(plan: &Plan, desired: &Value, live: &Value) -> Option<String> {
    let (key, other) = (ObjectKey::from_object(desired)?, ObjectKey::from_object(live)?);
    canary::revision(live)?;
    if canary::revision(live) == canary::revision(desired) || is_kept(plan, live) {
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
    let (key, revision) = (ObjectKey::from_object(live), canary::revision(live));
    plan.phases
        .of(Phase::Deployments)
        .any(|desired| ObjectKey::from_object(desired) == key && canary::revision(desired) == revision)
}

/// What sends requests to what a bundle serves.
fn callers(plan: &Plan) -> String {
    let callers = plan.phases.of(Phase::Callers).filter_map(ObjectKey::from_object);
    let conversions = plan
        .conversions
        .iter()
        .map(|conversion| format!("the conversion of {}", conversion.crd));
    let callers: Vec<_> = callers.map(|key| key.to_string()).chain(conversions).collect();
    CALLERS.summarize(&callers)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_bundle::render::{Conversion, ServingDefaults, WebhookCertificate};

    use super::*;
    use crate::install::plan::Phases;

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
            let found = interruptions(&plan, &live);
            assert_eq!(found.len(), usize::from(expected.is_some()), "{case}: {found:?}");
            for interruption in found {
                assert!(
                    interruption.cause.contains(expected.unwrap_or_default()),
                    "{case}: {interruption:?}"
                );
            }
        }
    }
}
