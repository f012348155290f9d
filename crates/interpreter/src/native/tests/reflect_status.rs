use serde_json::{Value, json};

use super::{of_kind, resource_interpreter};
use crate::{NativeInterpreter, fields::Fields, native::reflect_status::rule};

#[tokio::test]
async fn each_kind_has_a_collected_status() {
    let workload = |status: Value| {
        json!({
            "metadata": {"generation": 3, "annotations": {"resourcetemplate.karmada.io/generation": "2"}},
            "status": status,
        })
    };
    let with = |status: Value| json!({"status": status});
    let load_balancer = json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}});
    let job = json!({
        "active": 1, "succeeded": 2, "failed": 0, "startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-02T00:00:00Z",
        "conditions": [{"type": "Complete", "status": "True"}],
    });
    let mut job_with_more = job.clone();
    job_with_more["ready"] = json!(1);
    for (api_version, kind, object, expected) in [
        (
            "apps/v1",
            "Deployment",
            workload(json!({
                "replicas": 3, "updatedReplicas": 3, "readyReplicas": 2, "availableReplicas": 2, "unavailableReplicas": 1,
                "observedGeneration": 3, "conditions": [], "collisionCount": 1,
            })),
            json!({
                "replicas": 3, "updatedReplicas": 3, "readyReplicas": 2, "availableReplicas": 2, "unavailableReplicas": 1,
                "observedGeneration": 3, "generation": 3, "resourceTemplateGeneration": 2,
            }),
        ),
        (
            "apps/v1",
            "Deployment",
            json!({"metadata": {"generation": 1}, "status": {"replicas": 1}}),
            json!({"replicas": 1, "generation": 1}),
        ),
        ("apps/v1", "Deployment", workload(json!({})), json!(null)),
        ("apps/v1", "Deployment", workload(json!(null)), json!(null)),
        (
            "apps/v1",
            "ReplicaSet",
            workload(
                json!({"replicas": 3, "readyReplicas": 2, "availableReplicas": 2, "fullyLabeledReplicas": 3, "observedGeneration": 3}),
            ),
            json!({"replicas": 3, "readyReplicas": 2, "availableReplicas": 2, "observedGeneration": 3, "generation": 3, "resourceTemplateGeneration": 2}),
        ),
        (
            "apps/v1",
            "StatefulSet",
            workload(json!({
                "availableReplicas": 1, "currentReplicas": 2, "readyReplicas": 3, "replicas": 4, "updatedReplicas": 5,
                "observedGeneration": 3, "currentRevision": "a",
            })),
            json!({
                "availableReplicas": 1, "currentReplicas": 2, "readyReplicas": 3, "replicas": 4, "updatedReplicas": 5,
                "observedGeneration": 3, "generation": 3, "resourceTemplateGeneration": 2,
            }),
        ),
        (
            "apps/v1",
            "DaemonSet",
            workload(json!({
                "currentNumberScheduled": 1, "desiredNumberScheduled": 2, "numberAvailable": 3, "numberMisscheduled": 4,
                "numberReady": 5, "updatedNumberScheduled": 6, "numberUnavailable": 7, "observedGeneration": 3, "collisionCount": 1,
            })),
            json!({
                "currentNumberScheduled": 1, "desiredNumberScheduled": 2, "numberAvailable": 3, "numberMisscheduled": 4,
                "numberReady": 5, "updatedNumberScheduled": 6, "numberUnavailable": 7, "observedGeneration": 3,
                "generation": 3, "resourceTemplateGeneration": 2,
            }),
        ),
        (
            "v1",
            "Service",
            json!({"spec": {"type": "ClusterIP"}, "status": load_balancer}),
            json!(null),
        ),
        (
            "v1",
            "Service",
            json!({"spec": {"type": "LoadBalancer"}}),
            json!(null),
        ),
        (
            "v1",
            "Service",
            json!({"spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}, "conditions": []}}),
            load_balancer.clone(),
        ),
        (
            "networking.k8s.io/v1",
            "Ingress",
            with(load_balancer.clone()),
            load_balancer,
        ),
        ("batch/v1", "Job", with(job_with_more), job),
        (
            "batch/v1",
            "CronJob",
            with(json!({"active": [], "more": 1})),
            json!({"active": [], "more": 1}),
        ),
        (
            "v1",
            "Pod",
            with(json!({"phase": "Running", "podIP": "10.0.0.1"})),
            json!({"phase": "Running", "podIP": "10.0.0.1"}),
        ),
        (
            "v1",
            "PersistentVolume",
            with(json!({"phase": "Bound", "reason": "x"})),
            json!({"phase": "Bound", "reason": "x"}),
        ),
        (
            "v1",
            "PersistentVolumeClaim",
            with(json!({"phase": "Bound", "capacity": {}})),
            json!({"phase": "Bound", "capacity": {}}),
        ),
        (
            "policy/v1",
            "PodDisruptionBudget",
            with(json!({
                "disruptionsAllowed": 0, "expectedPods": 3, "desiredHealthy": 2, "currentHealthy": 2,
                "disruptedPods": {"a": "2026-01-01T00:00:00Z"}, "conditions": [], "observedGeneration": 1,
            })),
            json!({
                "disruptionsAllowed": 0, "expectedPods": 3, "desiredHealthy": 2, "currentHealthy": 2,
                "disruptedPods": {"a": "2026-01-01T00:00:00Z"},
            }),
        ),
        (
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            with(json!({"currentReplicas": 1, "desiredReplicas": 2, "currentMetrics": null})),
            json!({"currentReplicas": 1, "desiredReplicas": 2}),
        ),
        (
            "example.com/v1",
            "Widget",
            with(json!({"anything": [1]})),
            json!({"anything": [1]}),
        ),
        ("example.com/v1", "Widget", json!({"spec": {}}), json!(null)),
    ] {
        let object = of_kind(api_version, kind, &object);
        let status = resource_interpreter(NativeInterpreter::new(jiff::Timestamp::now))
            .status(&object)
            .await
            .unwrap();
        assert_eq!(json!(status), expected, "{object}");
    }
}

#[test]
fn an_invalid_status_is_reported() {
    let of_template = |generation: Value| json!({"metadata": {"annotations": {"resourcetemplate.karmada.io/generation": generation}}, "status": {"replicas": 1}});
    let annotation = ".metadata.annotations['resourcetemplate.karmada.io/generation']";
    for (api_version, kind, object, message) in [
        (
            "apps/v1",
            "Deployment",
            of_template(json!("new")),
            format!("{annotation}: \"new\" is not a generation"),
        ),
        (
            "apps/v1",
            "DaemonSet",
            of_template(json!(1)),
            format!("{annotation} is not a string"),
        ),
        (
            "batch/v1",
            "Job",
            json!({"status": {"active": "1"}}),
            ".status.active is not an integer".to_owned(),
        ),
        (
            "example.com/v1",
            "Widget",
            json!({"status": "fine"}),
            ".status is not an object".to_owned(),
        ),
    ] {
        let error = rule(api_version, kind)(&Fields::new(&object)).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
}
