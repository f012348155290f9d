use serde_json::{Value, json};

use super::{of_kind, resource_interpreter};
use crate::{
    ObjectHealth,
    fields::Fields,
    native::{NativeInterpreter, health::rule},
};

async fn health(
    interpreter: NativeInterpreter,
    api_version: &str,
    kind: &str,
    object: &Value,
) -> ObjectHealth {
    let object = of_kind(api_version, kind, object);
    resource_interpreter(interpreter).health(&object).await.0
}

#[tokio::test]
async fn each_kind_has_a_health_rule() {
    let of_generation = |observed: i64, spec: Value, status: Value| {
        let mut object = json!({"metadata": {"generation": 2}, "spec": spec, "status": status});
        object["status"]["observedGeneration"] = json!(observed);
        object
    };
    let in_phase = |phase: &str| json!({"status": {"phase": phase}});
    let with = |condition_type: &str, status: &str| json!({"status": {"conditions": [{"type": "Other", "status": "True"}, {"type": condition_type, "status": status}]}});
    let pod = |phase: &str, ready: &str| json!({"status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]}});
    let load_balancer = |ingress: Value| json!({"spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {"ingress": ingress}}});
    let replicas =
        |updated: i64, available: i64| json!({"updatedReplicas": updated, "availableReplicas": available});
    let nodes = |desired: i64, updated: i64, available: i64| json!({"desiredNumberScheduled": desired, "updatedNumberScheduled": updated, "numberAvailable": available});
    for (kinds, object, is_healthy) in [
        (
            &[("apps/v1", "Deployment"), ("apps/v1", "StatefulSet")][..],
            of_generation(2, json!({"replicas": 3}), replicas(3, 3)),
            true,
        ),
        (
            &[("apps/v1", "Deployment"), ("apps/v1", "StatefulSet")],
            of_generation(1, json!({"replicas": 3}), replicas(3, 3)),
            false,
        ),
        (
            &[("apps/v1", "Deployment"), ("apps/v1", "StatefulSet")],
            of_generation(2, json!({"replicas": 3}), replicas(2, 3)),
            false,
        ),
        (
            &[("apps/v1", "Deployment"), ("apps/v1", "StatefulSet")],
            of_generation(2, json!({"replicas": 3}), replicas(3, 2)),
            false,
        ),
        (
            &[("apps/v1", "Deployment"), ("apps/v1", "StatefulSet")],
            of_generation(2, json!({}), replicas(1, 1)),
            true,
        ),
        (
            &[("apps/v1", "Deployment"), ("apps/v1", "StatefulSet")],
            json!({"spec": {"replicas": 0}}),
            true,
        ),
        (
            &[("apps/v1", "ReplicaSet")],
            of_generation(2, json!({"replicas": 3}), replicas(0, 3)),
            true,
        ),
        (
            &[("apps/v1", "ReplicaSet")],
            of_generation(2, json!({"replicas": 3}), replicas(0, 2)),
            false,
        ),
        (
            &[("apps/v1", "ReplicaSet")],
            of_generation(1, json!({"replicas": 3}), replicas(0, 3)),
            false,
        ),
        (
            &[("apps/v1", "ReplicaSet")],
            of_generation(2, json!({}), json!({})),
            true,
        ),
        (
            &[("apps/v1", "DaemonSet")],
            of_generation(2, json!({}), nodes(3, 3, 3)),
            true,
        ),
        (
            &[("apps/v1", "DaemonSet")],
            of_generation(2, json!({}), nodes(3, 2, 3)),
            false,
        ),
        (
            &[("apps/v1", "DaemonSet")],
            of_generation(2, json!({}), nodes(3, 3, 2)),
            false,
        ),
        (
            &[("apps/v1", "DaemonSet")],
            of_generation(3, json!({}), nodes(3, 3, 3)),
            false,
        ),
        (&[("v1", "Service")], json!({"spec": {"type": "ClusterIP"}}), true),
        (&[("v1", "Service")], json!({}), true),
        (&[("v1", "Service")], load_balancer(json!([])), false),
        (
            &[("v1", "Service"), ("networking.k8s.io/v1", "Ingress")],
            load_balancer(json!([{}, {"ip": "192.0.2.1"}])),
            true,
        ),
        (
            &[("v1", "Service"), ("networking.k8s.io/v1", "Ingress")],
            load_balancer(json!([{"hostname": "a.example.com"}])),
            true,
        ),
        (
            &[("v1", "Service"), ("networking.k8s.io/v1", "Ingress")],
            load_balancer(json!([{"ip": "", "hostname": ""}])),
            false,
        ),
        (&[("networking.k8s.io/v1", "Ingress")], json!({}), false),
        (&[("v1", "PersistentVolumeClaim")], in_phase("Bound"), true),
        (
            &[
                ("v1", "PersistentVolumeClaim"),
                ("v1", "Namespace"),
                ("v1", "Pod"),
            ],
            in_phase("Pending"),
            false,
        ),
        (
            &[
                ("v1", "PersistentVolumeClaim"),
                ("v1", "Namespace"),
                ("v1", "Pod"),
            ],
            json!({}),
            false,
        ),
        (&[("v1", "Namespace")], in_phase("Active"), true),
        (&[("v1", "Namespace")], in_phase("Terminating"), false),
        (&[("v1", "Pod")], in_phase("Succeeded"), true),
        (&[("v1", "Pod")], pod("Running", "True"), true),
        (&[("v1", "Pod")], pod("Running", "False"), false),
        (&[("v1", "Pod")], pod("Pending", "True"), false),
        (
            &[("policy/v1", "PodDisruptionBudget")],
            json!({"status": {"currentHealthy": 2, "desiredHealthy": 2}}),
            true,
        ),
        (
            &[("policy/v1", "PodDisruptionBudget")],
            json!({"status": {"currentHealthy": 1, "desiredHealthy": 2}}),
            false,
        ),
        (
            &[("batch/v1", "Job")],
            json!({"status": {"startTime": "2026-01-01T00:00:00Z", "active": 1}}),
            true,
        ),
        (&[("batch/v1", "Job")], json!({}), false),
        (&[("batch/v1", "Job")], json!({"spec": {"suspend": true}}), true),
        (&[("batch/v1", "Job")], with("Complete", "True"), true),
        (&[("batch/v1", "Job")], with("Failed", "True"), false),
        (&[("batch/v1", "Job")], with("FailureTarget", "True"), false),
        (&[("batch/v1", "CronJob")], json!({}), true),
        (
            &[("batch/v1", "CronJob")],
            json!({"status": {"lastScheduleTime": "2026-01-02T00:00:00Z"}}),
            false,
        ),
        (
            &[("batch/v1", "CronJob")],
            json!({"status": {"lastScheduleTime": "2026-01-02T00:00:00Z", "active": [{}]}}),
            true,
        ),
        (
            &[("batch/v1", "CronJob")],
            json!({"status": {"lastScheduleTime": "2026-01-02T00:00:00Z", "lastSuccessfulTime": "2026-01-02T00:01:00Z"}}),
            true,
        ),
        (
            &[("batch/v1", "CronJob")],
            json!({"status": {"lastScheduleTime": "2026-01-02T00:00:00Z", "lastSuccessfulTime": "2026-01-01T00:01:00Z"}}),
            false,
        ),
        (
            &[("batch/v1", "CronJob")],
            json!({"spec": {"suspend": true}, "status": {"lastScheduleTime": "2026-01-02T00:00:00Z"}}),
            true,
        ),
        (
            &[("apiextensions.k8s.io/v1", "CustomResourceDefinition")],
            with("Established", "True"),
            true,
        ),
        (
            &[("apiextensions.k8s.io/v1", "CustomResourceDefinition")],
            with("Established", "False"),
            false,
        ),
        (
            &[("apiregistration.k8s.io/v1", "APIService")],
            with("Available", "True"),
            true,
        ),
        (
            &[("apiregistration.k8s.io/v1", "APIService")],
            with("Available", "Unknown"),
            false,
        ),
        (
            &[
                ("apps/v1beta1", "Deployment"),
                ("v1", "ConfigMap"),
                ("batch/v1beta1", "CronJob"),
            ],
            with("Failed", "True"),
            true,
        ),
    ] {
        for (api_version, kind) in kinds {
            let expected = if is_healthy {
                ObjectHealth::Healthy
            } else {
                ObjectHealth::Unhealthy
            };
            let health = health(
                NativeInterpreter::new(jiff::Timestamp::now),
                api_version,
                kind,
                &object,
            )
            .await;
            assert_eq!(health, expected, "{kind} {object}");
        }
    }
}

#[tokio::test]
async fn other_kinds_may_have_a_health_condition() {
    let object = |condition: Value, observed: Value| json!({"metadata": {"generation": 2}, "status": {"observedGeneration": observed, "conditions": [condition]}});
    let ready = |status: &str| json!({"type": "Ready", "status": status});
    let of_generation =
        |generation: i64| json!({"type": "Ready", "status": "True", "observedGeneration": generation});
    for (object, expected) in [
        (object(ready("True"), json!(null)), ObjectHealth::Healthy),
        (object(ready("True"), json!(2)), ObjectHealth::Healthy),
        (object(ready("True"), json!(1)), ObjectHealth::Unhealthy),
        (object(of_generation(2), json!(1)), ObjectHealth::Healthy),
        (object(of_generation(1), json!(2)), ObjectHealth::Unhealthy),
        (object(ready("False"), json!(2)), ObjectHealth::Unhealthy),
        (
            object(json!({"type": "Synced", "status": "True"}), json!(2)),
            ObjectHealth::Unhealthy,
        ),
        (
            object(json!({"type": "Ready", "status": true}), json!(2)),
            ObjectHealth::Unknown,
        ),
        (
            json!({"status": {"observedGeneration": 1, "conditions": [ready("True")]}}),
            ObjectHealth::Healthy,
        ),
        (json!({}), ObjectHealth::Unhealthy),
    ] {
        for (api_version, kind) in [("example.com/v1", "Widget"), ("apps/v1", "Deployment")] {
            let interpreter = NativeInterpreter::new(jiff::Timestamp::now).with_condition_health(
                api_version,
                kind,
                "Ready",
            );
            assert_eq!(
                health(interpreter, api_version, kind, &object).await,
                expected,
                "{object}"
            );
        }
    }
}

#[test]
fn a_wrong_type_is_reported() {
    for (api_version, kind, object, message) in [
        (
            "apps/v1",
            "Deployment",
            json!({"spec": {"replicas": "3"}}),
            ".spec.replicas is not an integer",
        ),
        (
            "apps/v1",
            "DaemonSet",
            json!({"status": 1}),
            ".status is not an object",
        ),
        (
            "v1",
            "Pod",
            json!({"status": {"phase": 1}}),
            ".status.phase is not a string",
        ),
        (
            "batch/v1",
            "CronJob",
            json!({"status": {"lastScheduleTime": "yesterday"}}),
            ".status.lastScheduleTime is not a timestamp",
        ),
    ] {
        let error = rule(api_version, kind).unwrap()(&Fields::new(&object)).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
}
