//! Rollouts of serving Deployments that leave no moment without an endpoint, where the bundle says nothing else.

use serde_json::{Map, Value, json};
use windlass_object::{json, object};

use super::{deployment_config::ServingDefaults, serving_deployments::ServingDeployment};

/// How long a pod goes on serving after it was told to end: until no proxy sends it new connections.
const SLEEP_SECONDS: i64 = 5;

/// The API server's default of `terminationGracePeriodSeconds`.
const DEFAULT_GRACE_PERIOD_SECONDS: i64 = 30;

/// Adds what keeps webhooks answering during a rollout.
pub(super) fn close_gaps(deployment: &mut Value, serving: &ServingDeployment<'_>, desired: ServingDefaults) {
    let Some(webhook) = serving.webhooks.first() else {
        return;
    };
    let target_port = ServingDeployment::target_port(*webhook);
    let pod_spec = json::fields(deployment, &["spec", "template", "spec"]);
    let found = ServingDeployment::container_with(&Value::Object(pod_spec.clone()), &target_port);
    let sleep = sleep_seconds(pod_spec);
    let needs_node = needs_node_for_itself(pod_spec);
    let index = found.map_or(0, |(index, _)| index);
    if let Some(container) = json::list(pod_spec, "containers").get_mut(index) {
        // A name that no container has could never be probed.
        if desired.readiness_probe && (found.is_some() || target_port.is_i64()) {
            json::fields(container, &[])
                .entry("readinessProbe")
                .or_insert_with(|| json!({"tcpSocket": {"port": target_port}}));
        }
        if desired.pre_stop && sleep > 0 {
            json::fields(container, &["lifecycle"])
                .entry("preStop")
                .or_insert_with(|| json!({"sleep": {"seconds": sleep}}));
        }
    }
    // Two pods that both want the node for themselves would wait for each other.
    if desired.rolling_update && !needs_node {
        surge_first(json::fields(deployment, &["spec"]));
    }
}

/// Ends no pod before its successor is ready, unless the bundle has a strategy of its own.
fn surge_first(spec: &mut Map<String, Value>) {
    let strategy = spec.get("strategy").unwrap_or(&Value::Null);
    let is_rolling = object::text(strategy, "/type").is_none_or(|kind| kind == "RollingUpdate");
    let has_own = strategy.pointer("/rollingUpdate/maxUnavailable").is_some();
    let never_surges = strategy
        .pointer("/rollingUpdate/maxSurge")
        .is_some_and(|surge| surge.as_i64() == Some(0) || surge.as_str() == Some("0%"));
    if !is_rolling || has_own || never_surges {
        return;
    }
    let mut strategy = strategy.clone();
    json::fields(&mut strategy, &[]).insert("type".into(), "RollingUpdate".into());
    json::fields(&mut strategy, &["rollingUpdate"]).insert("maxUnavailable".into(), 0.into());
    spec.insert("strategy".into(), strategy);
}

/// The sleep before a container is told to end: it is part of the grace period, and must leave time to drain.
fn sleep_seconds(pod_spec: &Map<String, Value>) -> i64 {
    let grace = pod_spec
        .get("terminationGracePeriodSeconds")
        .and_then(Value::as_i64)
        .unwrap_or(DEFAULT_GRACE_PERIOD_SECONDS);
    SLEEP_SECONDS.min(grace / 2)
}

fn needs_node_for_itself(pod_spec: &Map<String, Value>) -> bool {
    let on_host = pod_spec.get("hostNetwork").and_then(Value::as_bool) == Some(true);
    on_host
        || pod_spec
            .get("containers")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .flat_map(|container| object::items(container, "/ports"))
            .filter_map(|port| port.get("hostPort")?.as_i64())
            .any(|port| port != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::sample;

    fn rendered(spec: Value, desired: ServingDefaults) -> Value {
        let bundle = sample::bundle();
        let serving = ServingDeployment::all(bundle.csv());
        let mut deployment = json!({"spec": spec});
        close_gaps(&mut deployment, &serving[0], desired);
        deployment["spec"].take()
    }

    fn spec(pod_spec: Value) -> Value {
        json!({"template": {"spec": pod_spec}})
    }

    #[test]
    fn the_container_with_the_port_is_probed_and_sleeps() {
        let containers = json!([{"name": "proxy"}, {"name": "manager", "ports": [{"containerPort": 9443}]}]);
        assert_eq!(
            rendered(
                spec(json!({"containers": containers})),
                ServingDefaults::default()
            ),
            json!({
                "template": {"spec": {"containers": [
                    {"name": "proxy"},
                    {
                        "name": "manager",
                        "ports": [{"containerPort": 9443}],
                        "readinessProbe": {"tcpSocket": {"port": 9443}},
                        "lifecycle": {"preStop": {"sleep": {"seconds": 5}}},
                    },
                ]}},
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0}},
            })
        );
        let first = rendered(
            spec(json!({"containers": [{"name": "a"}, {"name": "b"}]})),
            ServingDefaults::default(),
        );
        assert_eq!(
            first["template"]["spec"]["containers"][0]["readinessProbe"]["tcpSocket"]["port"],
            9443
        );
    }

    #[test]
    fn what_the_bundle_says_stays() {
        let container = json!({
            "name": "a", "readinessProbe": {"httpGet": {"port": 8081}},
            "lifecycle": {"preStop": {"exec": {"command": ["drain"]}}},
        });
        for strategy in [
            json!({"type": "Recreate"}),
            json!({"rollingUpdate": {"maxUnavailable": 1}}),
            json!({"rollingUpdate": {"maxSurge": 0}}),
            json!({"rollingUpdate": {"maxSurge": "0%"}}),
        ] {
            let mut written = spec(json!({"containers": [container]}));
            written["strategy"] = strategy;
            assert_eq!(rendered(written.clone(), ServingDefaults::default()), written);
        }
        let mut surging = spec(json!({"containers": []}));
        surging["strategy"] = json!({"rollingUpdate": {"maxSurge": 2}});
        assert_eq!(
            rendered(surging, ServingDefaults::default())["strategy"],
            json!({"rollingUpdate": {"maxSurge": 2, "maxUnavailable": 0}, "type": "RollingUpdate"})
        );
    }

    #[test]
    fn each_can_be_turned_off() {
        let written = spec(json!({"containers": [{"name": "a"}]}));
        let off = ServingDefaults {
            readiness_probe: false,
            pre_stop: false,
            rolling_update: false,
            canary: false,
        };
        assert_eq!(rendered(written.clone(), off), written);
    }

    #[test]
    fn a_sleep_leaves_half_of_the_grace_period() {
        for (grace, expected) in [(30, Some(5)), (10, Some(5)), (4, Some(2)), (1, None), (0, None)] {
            let pod_spec = json!({"terminationGracePeriodSeconds": grace, "containers": [{"name": "a"}]});
            let rendered = rendered(spec(pod_spec), ServingDefaults::default());
            let sleep = rendered.pointer("/template/spec/containers/0/lifecycle/preStop/sleep/seconds");
            assert_eq!(sleep.and_then(Value::as_i64), expected, "{grace}");
        }
    }

    #[test]
    fn pods_that_take_ports_of_their_node_do_not_surge() {
        for pod_spec in [
            json!({"hostNetwork": true, "containers": [{"name": "a"}]}),
            json!({"containers": [{"name": "a", "ports": [{"containerPort": 9443, "hostPort": 9443}]}]}),
        ] {
            assert!(
                rendered(spec(pod_spec), ServingDefaults::default())
                    .get("strategy")
                    .is_none()
            );
        }
    }
}
