//! Rollouts of serving Deployments that always keep a ready endpoint, unless the bundle configures them
//! itself.

use serde_json::{Map, Value, json};
use windlass_object::{json, object};

use super::{deployment_config::ServingDefaults, serving_deployments::ServingDeployment};
use crate::callers::container_with;

/// Seconds that a terminating pod keeps serving, until no proxy sends it new connections.
const SLEEP_SECONDS: i64 = 5;

/// The API server's default of `terminationGracePeriodSeconds`.
const DEFAULT_GRACE_PERIOD_SECONDS: i64 = 30;

/// Adds the settings that keep webhooks answering during a rollout.
pub(super) fn add_rollout_settings(
    deployment: &mut Value,
    serving: &ServingDeployment<'_>,
    desired: ServingDefaults,
) {
    let Some((_, target_port)) = serving.ports().next() else {
        return;
    };
    let pod_spec = json::fields(deployment, &["spec", "template", "spec"]);
    let found = container_with(&Value::Object(pod_spec.clone()), &target_port);
    let sleep = sleep_seconds(pod_spec);
    let needs_node = needs_node_for_itself(pod_spec);
    let has_claim = object::items(&Value::Object(pod_spec.clone()), "/volumes")
        .iter()
        .any(|volume| volume.get("persistentVolumeClaim").is_some());
    let index = found.map_or(0, |(index, _)| index);
    if let Some(container) = json::list(pod_spec, "containers").get_mut(index) {
        // No container has a port of that name, so a probe could never succeed.
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
    if !desired.rolling_update {
        return;
    }
    let is_recreated = object::text(deployment, "/spec/strategy/type") == Some("Recreate");
    let spec = json::fields(deployment, &["spec"]);
    if needs_node || (has_claim && is_recreated) {
        // During a rollout, two pods that need exclusive use of a node would wait for each other.
        stop_before_successor(spec);
    } else {
        surge_first(spec);
    }
}

/// Returns the message for a bundled strategy that [surging](surge_first) replaced in one of the rendered
/// `deployments`; `None` if it is unchanged or only stricter.
pub(super) fn override_message(serving: &ServingDeployment<'_>, deployments: &[Value]) -> Option<String> {
    let name = serving.deployment.name();
    let written = serving.deployment.spec()?.get("strategy")?;
    let rendered = deployments
        .iter()
        .find(|deployment| object::text(deployment, "/metadata/name") == Some(name))?
        .pointer("/spec/strategy")?;
    let limit = |field: &str| {
        let limit = written.pointer(&format!("/rollingUpdate/{field}"))?;
        let is_kept = rendered.pointer(&format!("/rollingUpdate/{field}")) == Some(limit);
        (!is_kept).then(|| {
            format!(
                "{field}: {}",
                limit.as_str().map_or_else(|| limit.to_string(), str::to_owned)
            )
        })
    };
    let is_recreated = |strategy: &Value| object::text(strategy, "/type") == Some("Recreate");
    let overridden = if is_recreated(written) {
        (!is_recreated(rendered)).then(|| "type: Recreate".to_owned())
    } else {
        limit("maxUnavailable").or_else(|| limit("maxSurge"))
    };
    Some(format!(
        "the strategy of Deployment {name} ({}) may leave no pod to serve its webhooks, and is replaced by one that stops no pod \
         before its successor is ready: to keep it, set spec.config.windlass.rollingUpdate: false",
        overridden?
    ))
}

/// Stops no pod before its successor is ready, unless the bundle's strategy already keeps some pods.
fn surge_first(spec: &mut Map<String, Value>) {
    let strategy = spec.get("strategy").unwrap_or(&Value::Null);
    if object::text(strategy, "/type") == Some("Recreate") {
        let surging = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0}});
        spec.insert("strategy".into(), surging);
        return;
    }
    let replicas = spec.get("replicas").and_then(Value::as_i64).unwrap_or(1);
    let limit = |pointer| resolve_limit(strategy.pointer(pointer)?, replicas);
    if limit("/rollingUpdate/maxUnavailable").is_some_and(|limit| limit < replicas && limit != 0) {
        return;
    }
    let never_surges = strategy
        .pointer("/rollingUpdate/maxSurge")
        .is_some_and(|surge| resolve_limit(surge, 100) == Some(0));
    let mut strategy = strategy.clone();
    json::fields(&mut strategy, &[]).insert("type".into(), "RollingUpdate".into());
    let limits = json::fields(&mut strategy, &["rollingUpdate"]);
    limits.insert("maxUnavailable".into(), 0.into());
    if never_surges {
        limits.shift_remove("maxSurge");
    }
    spec.insert("strategy".into(), strategy);
}

/// Stops a pod before its successor starts, unless the bundle has a strategy.
fn stop_before_successor(spec: &mut Map<String, Value>) {
    spec.entry("strategy").or_insert_with(
        || json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}),
    );
}

/// Resolves a number of pods, or a percentage of `replicas`, rounded down.
fn resolve_limit(limit: &Value, replicas: i64) -> Option<i64> {
    match limit {
        Value::String(text) => {
            let percent = text.strip_suffix('%').unwrap_or(text);
            percent
                .parse::<i64>()
                .ok()
                .map(|percent| replicas * percent / 100)
        }
        limit => limit.as_i64(),
    }
}

/// The seconds of sleep before a container gets its termination signal. They are part of the grace period and
/// must leave time to drain connections.
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
    use crate::render::{DeploymentConfig, render, sample};

    fn rendered(spec: Value, desired: ServingDefaults) -> Value {
        let bundle = sample::bundle();
        let serving = ServingDeployment::all(&bundle);
        let mut deployment = json!({"spec": spec});
        add_rollout_settings(&mut deployment, &serving[0], desired);
        deployment["spec"].take()
    }

    fn spec(pod_spec: Value) -> Value {
        json!({"template": {"spec": pod_spec}})
    }

    #[test]
    fn the_container_with_the_port_gets_probe_and_sleep() {
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
    fn a_strategy_that_keeps_a_pod_is_unchanged() {
        let container = json!({
            "name": "a", "readinessProbe": {"httpGet": {"port": 8081}},
            "lifecycle": {"preStop": {"exec": {"command": ["drain"]}}},
        });
        for rolling in [
            json!({"maxUnavailable": 1}),
            json!({"maxUnavailable": "34%", "maxSurge": 0}),
        ] {
            let mut written = spec(json!({"containers": [container]}));
            written["replicas"] = json!(3);
            written["strategy"] = json!({"rollingUpdate": rolling});
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
    fn a_strategy_that_keeps_no_pod_is_replaced_by_surging() {
        for strategy in [
            json!({"type": "Recreate"}),
            json!({"rollingUpdate": {"maxUnavailable": 1}}),
            json!({"rollingUpdate": {"maxUnavailable": "100%"}}),
            json!({"rollingUpdate": {"maxSurge": 0}}),
            json!({"rollingUpdate": {"maxSurge": "0%", "maxUnavailable": 1}}),
        ] {
            let mut written = spec(json!({"containers": []}));
            written["strategy"] = strategy.clone();
            assert_eq!(
                rendered(written, ServingDefaults::default())["strategy"],
                json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0}}),
                "{strategy}"
            );
        }
    }

    #[test]
    fn overrides_are_reported_with_advice() {
        for (strategy, replicas, expected) in [
            (json!({"type": "Recreate"}), 1, Some("type: Recreate")),
            (
                json!({"rollingUpdate": {"maxUnavailable": 1}}),
                1,
                Some("maxUnavailable: 1"),
            ),
            (
                json!({"rollingUpdate": {"maxUnavailable": "100%"}}),
                2,
                Some("maxUnavailable: 100%"),
            ),
            (json!({"rollingUpdate": {"maxSurge": 0}}), 1, Some("maxSurge: 0")),
            (json!({"rollingUpdate": {"maxSurge": 2}}), 1, None),
            (json!({"rollingUpdate": {"maxUnavailable": 1}}), 2, None),
            (json!({"type": "RollingUpdate"}), 1, None),
            (json!(null), 1, None),
        ] {
            let mut bundle = sample::bundle();
            let spec = &mut bundle.csv.object["spec"]["install"]["spec"]["deployments"][0]["spec"];
            spec["strategy"] = strategy.clone();
            spec["replicas"] = replicas.into();
            let notices = |config: Value| {
                let mut options = sample::options("ns");
                options.config = DeploymentConfig::from_value("config", &config).unwrap();
                render(&bundle, &options).unwrap().notices
            };
            let found = notices(json!({}));
            assert_eq!(
                found.len(),
                usize::from(expected.is_some()),
                "{strategy}: {found:?}"
            );
            for part in expected
                .into_iter()
                .chain(["Deployment widgets.controller", "rollingUpdate: false"])
            {
                assert!(found.iter().all(|notice| notice.contains(part)), "{found:?}");
            }
            assert_eq!(notices(json!({"windlass": {"rollingUpdate": false}})), [""; 0]);
        }
    }

    #[test]
    fn each_default_can_be_turned_off() {
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
    fn the_sleep_is_at_most_half_of_the_grace_period() {
        for (grace, expected) in [(30, Some(5)), (10, Some(5)), (4, Some(2)), (1, None), (0, None)] {
            let pod_spec = json!({"terminationGracePeriodSeconds": grace, "containers": [{"name": "a"}]});
            let rendered = rendered(spec(pod_spec), ServingDefaults::default());
            let sleep = rendered.pointer("/template/spec/containers/0/lifecycle/preStop/sleep/seconds");
            assert_eq!(sleep.and_then(Value::as_i64), expected, "{grace}");
        }
    }

    #[test]
    fn pods_that_exclude_each_other_stop_before_their_successors() {
        let giving_way =
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}});
        for pod_spec in [
            json!({"hostNetwork": true, "containers": [{"name": "a"}]}),
            json!({"containers": [{"name": "a", "ports": [{"containerPort": 9443, "hostPort": 9443}]}]}),
        ] {
            let rendered = rendered(spec(pod_spec), ServingDefaults::default());
            assert_eq!(rendered["strategy"], giving_way);
        }
        let mut written = spec(json!({
            "containers": [{"name": "a"}], "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
        }));
        written["strategy"] = json!({"type": "Recreate"});
        let recreated = rendered(written.clone(), ServingDefaults::default());
        assert_eq!(recreated["strategy"], written["strategy"]);
        written["strategy"] = json!(null);
        let surging = rendered(written, ServingDefaults::default());
        assert_eq!(surging["strategy"]["rollingUpdate"], json!({"maxUnavailable": 0}));
    }
}
