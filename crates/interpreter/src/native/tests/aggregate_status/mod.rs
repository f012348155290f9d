use jiff::Timestamp;
use serde_json::{Value, json};

use super::{of_kind, resource_interpreter};
use crate::{
    NativeInterpreter,
    native::aggregate_status::{aggregate, rule},
    question::AggregatedStatusItem,
};

mod job;

const NOW: &str = "2026-01-05T00:00:00Z";

/// Statuses of the clusters `a`, `b` and so on; null if not collected.
fn items(statuses: &[Value]) -> Vec<AggregatedStatusItem> {
    let items = ('a'..)
        .zip(statuses)
        .map(|(cluster, status)| AggregatedStatusItem {
            cluster_name: cluster.to_string(),
            status: (!status.is_null()).then(|| status.clone()),
            ..AggregatedStatusItem::default()
        });
    items.collect()
}

/// The status of an object after aggregation.
#[track_caller]
fn status(api_version: &str, kind: &str, object: &Value, statuses: &[Value]) -> Value {
    let object = of_kind(api_version, kind, object);
    let now: Timestamp = NOW.parse().unwrap();
    let rule = rule(api_version, kind).unwrap();
    let mut aggregated = aggregate(rule, &object, Some(&items(statuses)), now).unwrap();
    let status = aggregated["status"].take();
    let mut unchanged = object;
    unchanged["status"] = json!(null);
    assert_eq!(aggregated, unchanged);
    status
}

#[test]
fn numbers_are_added() {
    for (api_version, kind, names) in [
        (
            "apps/v1",
            "Deployment",
            &[
                "replicas",
                "updatedReplicas",
                "readyReplicas",
                "availableReplicas",
                "unavailableReplicas",
            ][..],
        ),
        (
            "apps/v1",
            "ReplicaSet",
            &["replicas", "readyReplicas", "availableReplicas"],
        ),
        (
            "apps/v1",
            "StatefulSet",
            &[
                "availableReplicas",
                "currentReplicas",
                "readyReplicas",
                "replicas",
                "updatedReplicas",
            ],
        ),
        (
            "apps/v1",
            "DaemonSet",
            &[
                "currentNumberScheduled",
                "desiredNumberScheduled",
                "numberAvailable",
                "numberMisscheduled",
                "numberReady",
                "updatedNumberScheduled",
                "numberUnavailable",
            ],
        ),
        (
            "policy/v1",
            "PodDisruptionBudget",
            &[
                "disruptionsAllowed",
                "expectedPods",
                "desiredHealthy",
                "currentHealthy",
            ],
        ),
        (
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            &["currentReplicas", "desiredReplicas"],
        ),
    ] {
        for name in names {
            let old = json!({"status": {"conditions": [], *name: 9}});
            let sum = |statuses: &[Value]| status(api_version, kind, &old, statuses);
            assert_eq!(
                sum(&[json!({*name: 1}), json!(null), json!({*name: 2})]),
                json!({"conditions": [], *name: 3}),
                "{kind}"
            );
            assert_eq!(sum(&[json!({})]), json!({"conditions": [], *name: 0}), "{kind}");
            assert_eq!(
                status(api_version, kind, &json!({}), &[json!({})]),
                json!({}),
                "{kind}"
            );
        }
    }
}

#[test]
fn a_generation_is_observed_after_all_clusters_observed_it() {
    let old = json!({"metadata": {"generation": 5}, "status": {"observedGeneration": 4}});
    let seen = |observed: i64, generation: i64, of_template: i64| json!({"observedGeneration": observed, "generation": generation, "resourceTemplateGeneration": of_template});
    for kind in ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"] {
        for (statuses, observed) in [
            (vec![seen(2, 2, 5), seen(7, 7, 5)], 5),
            (vec![seen(2, 2, 5), seen(6, 7, 5)], 4),
            (vec![seen(2, 2, 5), seen(7, 7, 4)], 4),
            (vec![seen(2, 2, 5), json!(null)], 4),
            (vec![seen(2, 2, 5), json!({})], 4),
            (vec![], 5),
        ] {
            let status = status("apps/v1", kind, &old, &statuses);
            assert_eq!(status["observedGeneration"], observed, "{kind} {statuses:?}");
        }
    }
}

#[test]
fn disrupted_pods_of_all_clusters_are_listed() {
    let old = json!({"status": {"disruptedPods": {"old": "2026-01-01T00:00:00Z"}}});
    let in_cluster = json!({"disruptedPods": {"web": "2026-01-02T00:00:00Z"}});
    let status = |statuses: &[Value]| status("policy/v1", "PodDisruptionBudget", &old, statuses);
    assert_eq!(
        status(&[in_cluster.clone(), in_cluster]),
        json!({"disruptedPods": {"a/web": "2026-01-02T00:00:00Z", "b/web": "2026-01-02T00:00:00Z"}})
    );
    assert_eq!(status(&[]), json!({}));
}

#[test]
fn addresses_are_deduplicated() {
    let load_balancer = |ingress: Value| json!({"loadBalancer": {"ingress": ingress}});
    let http = json!({"port": 80, "protocol": "TCP"});
    let https = json!({"port": 443, "protocol": "TCP"});
    let statuses = [
        load_balancer(json!([{"ip": "192.0.2.2", "ports": [https]}, {"hostname": "a.example.com"}])),
        json!(null),
        load_balancer(json!([{"ip": "192.0.2.1"}, {"ip": "192.0.2.2", "ports": [http, https]}])),
    ];
    let expected = load_balancer(
        json!([{"hostname": "a.example.com"}, {"ip": "192.0.2.1"}, {"ip": "192.0.2.2", "ports": [http, https]}]),
    );
    let service = json!({"spec": {"type": "LoadBalancer"}});
    assert_eq!(status("v1", "Service", &service, &statuses), expected);
    assert_eq!(
        status("networking.k8s.io/v1", "Ingress", &json!({}), &statuses),
        expected
    );
    assert_eq!(
        status("v1", "Service", &service, &[]),
        json!({"loadBalancer": {}})
    );
    let internal = json!({"spec": {"type": "ClusterIP"}, "status": {"loadBalancer": {}}});
    assert_eq!(
        status("v1", "Service", &internal, &statuses),
        json!({"loadBalancer": {}})
    );
}

#[test]
fn the_worst_phase_is_used() {
    for (kind, phases, expected) in [
        ("Pod", &["Running", "Failed", "Pending"][..], "Failed"),
        ("Pod", &["Running", "Pending"], "Pending"),
        ("Pod", &["Running", ""], "Pending"),
        ("Pod", &["Succeeded", "Running"], "Running"),
        ("Pod", &["Succeeded"], "Succeeded"),
        ("PersistentVolume", &["Bound", "Failed", "Pending"], "Failed"),
        ("PersistentVolume", &["Available", "Bound", ""], "Pending"),
        ("PersistentVolume", &["Bound", "Available"], "Available"),
        ("PersistentVolume", &["Released", "Bound"], "Bound"),
        ("PersistentVolume", &["Released"], "Released"),
        ("PersistentVolumeClaim", &["Lost", "Pending", "Bound"], "Lost"),
        ("PersistentVolumeClaim", &["Pending", "Bound", ""], "Pending"),
        ("PersistentVolumeClaim", &["Bound", ""], "Bound"),
        ("PersistentVolumeClaim", &[], "Bound"),
    ] {
        let statuses: Vec<Value> = phases
            .iter()
            .map(|phase| {
                if phase.is_empty() {
                    json!(null)
                } else {
                    json!({"phase": phase})
                }
            })
            .collect();
        let status = status(
            "v1",
            kind,
            &json!({"status": {"phase": "old", "reason": "old"}}),
            &statuses,
        );
        assert_eq!(status, json!({"phase": expected}), "{kind} {phases:?}");
    }
    assert_eq!(
        status("v1", "Pod", &json!({}), &[json!({"phase": "Strange"})]),
        json!({})
    );
}

#[test]
fn a_pod_has_the_states_of_all_containers() {
    let running = json!({"running": {"startedAt": NOW}});
    let container = |ready: bool, state: &Value| json!({"name": "", "image": "", "imageID": "", "restartCount": 0, "ready": ready, "state": state, "lastState": {}});
    let in_cluster = json!({
        "phase": "Running",
        "containerStatuses": [{"name": "web", "ready": true, "state": running, "image": "web:1"}],
        "initContainerStatuses": [{"name": "init", "state": {"terminated": {"exitCode": 0}}}],
    });
    assert_eq!(
        status(
            "v1",
            "Pod",
            &json!({}),
            &[in_cluster.clone(), json!(null), in_cluster]
        ),
        json!({
            "phase": "Pending",
            "containerStatuses": [container(true, &running), container(true, &running)],
            "initContainerStatuses": [
                container(false, &json!({"terminated": {"exitCode": 0}})), container(false, &json!({"terminated": {"exitCode": 0}})),
            ],
        })
    );
    let pod = of_kind("v1", "Pod", &json!({"status": {"phase": "Running"}}));
    let unchanged = aggregate(rule("v1", "Pod").unwrap(), &pod, None, NOW.parse().unwrap());
    assert_eq!(unchanged.unwrap(), pod);
}

#[tokio::test]
async fn other_kinds_are_unchanged() {
    let interpreter = resource_interpreter(NativeInterpreter::new(jiff::Timestamp::now));
    for (api_version, kind, expected) in [
        ("apps/v1", "Deployment", json!({"replicas": 1})),
        ("apps/v1beta2", "Deployment", json!(null)),
        ("v1", "ConfigMap", json!(null)),
    ] {
        let object = of_kind(api_version, kind, &json!({}));
        let aggregated = interpreter
            .aggregate_status(&object, &items(&[json!({"replicas": 1})]))
            .await
            .unwrap();
        assert_eq!(aggregated["status"], expected, "{kind}");
    }
}

#[test]
fn a_wrong_type_is_reported_with_its_cluster() {
    for (api_version, kind, object, in_cluster, message) in [
        (
            "apps/v1",
            "Deployment",
            json!({}),
            json!({"replicas": "1"}),
            "cluster a: .status.replicas is not an integer",
        ),
        (
            "apps/v1",
            "Deployment",
            json!({"status": 1}),
            json!({}),
            ".status is not an object",
        ),
        (
            "v1",
            "Pod",
            json!({}),
            json!("Running"),
            "cluster a: .status is not an object",
        ),
        (
            "batch/v1",
            "Job",
            json!({}),
            json!({"startTime": "now"}),
            "cluster a: .status.startTime is not a timestamp",
        ),
        (
            "v1",
            "PersistentVolumeClaim",
            json!({}),
            json!({"phase": 1}),
            "cluster a: .status.phase is not a string",
        ),
        (
            "networking.k8s.io/v1",
            "Ingress",
            json!({}),
            json!({"loadBalancer": {"ingress": [{"ip": 1}]}}),
            "cluster a: .status.loadBalancer.ingress[0].ip is not a string",
        ),
    ] {
        let rule = rule(api_version, kind).unwrap();
        let error = aggregate(rule, &object, Some(&items(&[in_cluster])), NOW.parse().unwrap()).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
}
