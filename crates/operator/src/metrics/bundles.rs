//! State metrics of BundleDeployments.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_cluster::telemetry::Reading;
use windlass_object::{names, object};

use super::state::{StateMetric, conditions, info_reading, labelled, number, single};

pub(super) const METRICS: &[StateMetric] = &[
    StateMetric {
        name: "bundle_deployment_revision",
        help: "Number of the installed revision, and of the next one during an upgrade",
        read: |bundle| {
            let revision = |which| number(bundle, &format!("/status/{which}/revision"));
            labelled(
                "state",
                ["installed", "next"].map(|which| (which, revision(which))),
            )
        },
    },
    StateMetric {
        name: "bundle_deployment_info",
        help: "1 for the installed bundle, with its package and version",
        read: info,
    },
    StateMetric {
        name: "bundle_deployment_paused",
        help: "1 for each paused BundleDeployment",
        read: |bundle| single(object::annotation(bundle, names::PAUSED).map(|_| 1)),
    },
    StateMetric {
        name: "bundle_deployment_webhooks",
        help: "Webhooks and conversions by state",
        read: webhooks,
    },
    StateMetric {
        name: "bundle_deployment_condition",
        help: "1 for the current status and reason of each condition",
        read: conditions,
    },
];

fn info(bundle: &Value) -> Vec<Reading> {
    info_reading(["package", "version"].map(|field| {
        let pointer = format!("/status/installed/{field}");
        (field, object::text(bundle, &pointer))
    }))
}

/// Counts webhooks and conversions by state.
fn webhooks(bundle: &Value) -> Vec<Reading> {
    let mut states = BTreeMap::new();
    for list in ["/status/webhooks", "/status/conversions"] {
        for webhook in object::items(bundle, list) {
            if let Some(state) = object::text(webhook, "/state") {
                *states.entry(state).or_insert(0) += 1;
            }
        }
    }
    states
        .into_iter()
        .map(|(state, count)| (vec![("state", state.to_owned())], count))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::state::lines, *};

    #[test]
    fn the_metrics_of_a_bundle_match_its_status() {
        let bundle = json!({
            "metadata": {"name": "widgets", "annotations": {names::PAUSED: "night"}},
            "status": {
                "installed": {"revision": 4, "package": "widgets", "version": "0.1.0"},
                "next": {"version": "0.2.0"},
                "webhooks": [{"name": "a", "state": "Armed"}, {"name": "b", "state": "Arming"}],
                "conversions": [{"crd": "widgets.example.com", "state": "Armed"}],
                "conditions": [{"type": "Ready", "status": "False", "reason": "Waiting"}],
            },
        });
        assert_eq!(
            lines(METRICS, &bundle),
            [
                r#"bundle_deployment_revision{name="widgets",state="installed"} 4"#,
                r#"bundle_deployment_info{name="widgets",package="widgets",version="0.1.0"} 1"#,
                r#"bundle_deployment_paused{name="widgets"} 1"#,
                r#"bundle_deployment_webhooks{name="widgets",state="Armed"} 2"#,
                r#"bundle_deployment_webhooks{name="widgets",state="Arming"} 1"#,
                r#"bundle_deployment_condition{name="widgets",type="Ready",status="False",reason="Waiting"} 1"#,
            ]
        );
    }
}
