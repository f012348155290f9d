//! Deployments, StatefulSets and DaemonSets behind a Service: whether a restart costs requests, and the patch
//! that restarts one.

use std::collections::BTreeSet;

use json_patch::Patch;
use serde_json::{Value, json};
use windlass_object::{ObjectKey, names, object, patch};

use crate::rotation::{self, ObservedWorkload};

/// Reads a Deployment, StatefulSet or DaemonSet that runs `pods`. Returns `None` if a new pod template would
/// not replace all pods.
pub fn read_workload(workload: &Value, pods: BTreeSet<String>) -> Option<ObservedWorkload> {
    let restarted_for = workload
        .pointer("/spec/template/metadata/annotations")
        .and_then(|annotations| annotations.get(names::RESTARTED_FOR)?.as_str()?.parse().ok());
    let id = ObjectKey::from_object(workload)?;
    let (costs_requests, progressing) = match id.kind.as_str() {
        "Deployment" => (
            deployment_costs_requests(workload),
            is_rolling_out(workload, &DEPLOYMENT),
        ),
        "StatefulSet" if replaces_every_pod(workload) => (
            stateful_set_costs_requests(workload),
            is_rolling_out(workload, &STATEFUL_SET),
        ),
        "DaemonSet" if replaces_every_pod(workload) => (
            daemon_set_costs_requests(workload),
            is_rolling_out(workload, &DAEMON_SET),
        ),
        _ => return None,
    };
    Some(ObservedWorkload {
        id,
        pods,
        costs_requests,
        progressing,
        restarted_for,
    })
}

/// Returns the patch that restarts the pods of a workload, provided that it is unchanged.
pub fn restart_patch(workload: &Value, leaf: &rotation::Fingerprint) -> Patch {
    let path = "/spec/template/metadata/annotations";
    let mut annotations = workload.pointer(path).cloned().unwrap_or_else(|| json!({}));
    annotations[names::RESTARTED_FOR] = leaf.to_string().into();
    let mut operations = vec![patch::test(
        "/metadata/resourceVersion",
        &workload["metadata"]["resourceVersion"],
    )];
    if workload.pointer("/spec/template/metadata").is_none() {
        operations.push(patch::put("/spec/template/metadata", json!({})));
    }
    operations.push(patch::put(path, annotations));
    Patch(operations)
}

/// The status fields that all equal the number of pods once a rollout is complete.
struct Counts {
    desired: &'static str,
    done: &'static [&'static str],
}

const DEPLOYMENT: Counts = Counts {
    desired: "/spec/replicas",
    done: &[
        "/status/replicas",
        "/status/updatedReplicas",
        "/status/availableReplicas",
    ],
};

const STATEFUL_SET: Counts = Counts {
    desired: "/spec/replicas",
    done: &[
        "/status/replicas",
        "/status/updatedReplicas",
        "/status/readyReplicas",
    ],
};

const DAEMON_SET: Counts = Counts {
    desired: "/status/desiredNumberScheduled",
    done: &["/status/updatedNumberScheduled", "/status/numberAvailable"],
};

/// Reports whether pods are being replaced or are missing.
fn is_rolling_out(workload: &Value, counts: &Counts) -> bool {
    let count = |pointer: &str| workload.pointer(pointer).and_then(Value::as_i64);
    let desired = count(counts.desired).unwrap_or(1);
    let is_seen = count("/status/observedGeneration") >= count("/metadata/generation");
    let is_done = |pointer: &&str| count(pointer).unwrap_or(0) == desired;
    !(is_seen && counts.done.iter().all(is_done))
}

/// Reports whether a new pod template replaces every pod of a StatefulSet or DaemonSet without manual
/// deletion.
fn replaces_every_pod(workload: &Value) -> bool {
    let strategy = |field: &str| workload.pointer(&format!("/spec/updateStrategy/{field}"));
    let partition = strategy("rollingUpdate/partition").and_then(Value::as_i64);
    let is_rolling = strategy("type").and_then(Value::as_str) != Some("OnDelete");
    is_rolling && partition.unwrap_or(0) == 0
}

/// Reports whether all pods may be deleted before new ones are ready.
fn deployment_costs_requests(deployment: &Value) -> bool {
    if object::text(deployment, "/spec/strategy/type") == Some("Recreate") {
        return true;
    }
    let replicas = replicas(deployment);
    let limit = |field: &str| deployment.pointer(&format!("/spec/strategy/rollingUpdate/{field}"));
    let quarter = json!("25%");
    let surge = resolve_limit(limit("maxSurge").unwrap_or(&quarter), replicas, true);
    let unavailable = resolve_limit(limit("maxUnavailable").unwrap_or(&quarter), replicas, false);
    // If both are 0, the Deployment controller uses 1.
    let unavailable = if surge == 0 {
        unavailable.max(1)
    } else {
        unavailable
    };
    unavailable >= replicas
}

/// A StatefulSet deletes a pod before it creates the replacement.
fn stateful_set_costs_requests(stateful_set: &Value) -> bool {
    let replicas = replicas(stateful_set);
    let limit = stateful_set.pointer("/spec/updateStrategy/rollingUpdate/maxUnavailable");
    resolve_limit(limit.unwrap_or(&json!(1)), replicas, true).max(1) >= replicas
}

/// maxUnavailable pods of a DaemonSet may be missing at a time, unless it surges.
fn daemon_set_costs_requests(daemon_set: &Value) -> bool {
    let nodes = daemon_set.pointer(DAEMON_SET.desired).and_then(Value::as_i64);
    let nodes = nodes.unwrap_or(1);
    let limit = |field: &str| daemon_set.pointer(&format!("/spec/updateStrategy/rollingUpdate/{field}"));
    let surge = resolve_limit(limit("maxSurge").unwrap_or(&json!(0)), nodes, true);
    let unavailable = resolve_limit(limit("maxUnavailable").unwrap_or(&json!(1)), nodes, true);
    surge == 0 && unavailable.max(1) >= nodes
}

fn replicas(workload: &Value) -> i64 {
    let replicas = workload.pointer("/spec/replicas").and_then(Value::as_i64);
    replicas.unwrap_or(1)
}

/// Resolves a number of pods or a percentage of `replicas`.
fn resolve_limit(limit: &Value, replicas: i64, round_up: bool) -> i64 {
    let percentage = match limit {
        Value::String(text) => text.trim_end_matches('%').parse().unwrap_or(0),
        number => return number.as_i64().unwrap_or_default(),
    };
    let hundredths: i64 = replicas.saturating_mul(percentage);
    if round_up {
        hundredths.saturating_add(99) / 100
    } else {
        hundredths / 100
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rotation::Digest;

    #[test]
    fn a_restart_costs_requests_if_no_pod_must_stay_available() {
        let rolling = |replicas: i64, surge: Value, unavailable: Value| {
            json!({"spec": {"replicas": replicas, "strategy": {
                "type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable},
            }}})
        };
        for (deployment, expected) in [
            (
                json!({"spec": {"replicas": 3, "strategy": {"type": "Recreate"}}}),
                true,
            ),
            (json!({"spec": {}}), false),
            (rolling(1, json!("25%"), json!("25%")), false),
            (rolling(1, json!(0), json!(1)), true),
            (rolling(1, json!(1), json!(1)), true),
            (rolling(1, json!("0%"), json!("0%")), true),
            (rolling(2, json!(0), json!(1)), false),
            (rolling(2, json!(0), json!("100%")), true),
        ] {
            assert_eq!(deployment_costs_requests(&deployment), expected, "{deployment}");
        }
    }

    #[test]
    fn restarting_a_single_pod_stateful_set_or_daemon_set_costs_requests() {
        let read = |kind: &str, count: i64, strategy: Value| {
            let workload = json!({
                "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "w"},
                "spec": {"replicas": count, "updateStrategy": strategy},
                "status": {"desiredNumberScheduled": count},
            });
            read_workload(&workload, BTreeSet::new()).map(|workload| workload.costs_requests)
        };
        let rolling = |limits: Value| json!({"type": "RollingUpdate", "rollingUpdate": limits});
        for (kind, count, strategy, expected) in [
            ("StatefulSet", 1, json!({}), Some(true)),
            ("StatefulSet", 2, json!({}), Some(false)),
            (
                "StatefulSet",
                2,
                rolling(json!({"maxUnavailable": "51%"})),
                Some(true),
            ),
            ("StatefulSet", 2, rolling(json!({"partition": 1})), None),
            ("StatefulSet", 2, json!({"type": "OnDelete"}), None),
            ("DaemonSet", 1, json!({}), Some(true)),
            ("DaemonSet", 2, json!({}), Some(false)),
            (
                "DaemonSet",
                1,
                rolling(json!({"maxSurge": 1, "maxUnavailable": 0})),
                Some(false),
            ),
            (
                "DaemonSet",
                3,
                rolling(json!({"maxUnavailable": "100%"})),
                Some(true),
            ),
            ("DaemonSet", 3, json!({"type": "OnDelete"}), None),
            ("Job", 3, json!({}), None),
        ] {
            assert_eq!(
                read(kind, count, strategy.clone()),
                expected,
                "{kind} {count} {strategy}"
            );
        }
    }

    #[test]
    fn a_rollout_lasts_until_every_pod_is_updated_and_ready() {
        let stateful_set = |observed: i64, updated: i64, ready: i64| {
            let workload = json!({
                "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "w", "generation": 2},
                "spec": {"replicas": 2},
                "status": {
                    "observedGeneration": observed, "replicas": 2, "updatedReplicas": updated, "readyReplicas": ready,
                },
            });
            read_workload(&workload, BTreeSet::new()).unwrap().progressing
        };
        assert!(!stateful_set(2, 2, 2));
        for (observed, updated, ready) in [(1, 2, 2), (2, 1, 2), (2, 2, 1)] {
            assert!(
                stateful_set(observed, updated, ready),
                "{observed} {updated} {ready}"
            );
        }
    }

    #[test]
    fn a_restart_patch_only_adds_an_annotation() {
        for metadata in [
            json!({"annotations": {"theirs": "1"}}),
            json!({"labels": {}}),
            Value::Null,
        ] {
            let mut deployment = json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "d", "resourceVersion": "7"}, "spec": {"template": {"spec": {}}}
            });
            if !metadata.is_null() {
                deployment["spec"]["template"]["metadata"] = metadata.clone();
            }
            let leaf = Digest([7; 32]);
            let patch = restart_patch(&deployment, &leaf);
            json_patch::patch(&mut deployment, &patch).unwrap();
            assert_eq!(
                read_workload(&deployment, BTreeSet::new()).unwrap().restarted_for,
                Some(leaf),
                "{metadata}"
            );
            let theirs = deployment.pointer("/spec/template/metadata/annotations/theirs");
            assert_eq!(theirs, metadata.pointer("/annotations/theirs"));
        }
    }
}
