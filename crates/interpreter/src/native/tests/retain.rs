use serde_json::{Value, json};

use super::{of_kind, resource_interpreter};
use crate::{NativeInterpreter, native::retain::rule};

async fn retain(api_version: &str, kind: &str, desired: &Value, observed: &Value) -> Value {
    let desired = of_kind(api_version, kind, desired);
    let retained = resource_interpreter(NativeInterpreter::new(jiff::Timestamp::now))
        .retain(&desired, observed)
        .await;
    let mut retained = retained.unwrap();
    let fields = retained.as_object_mut().unwrap();
    fields.remove("apiVersion");
    fields.remove("kind");
    retained
}

#[tokio::test]
async fn each_kind_keeps_values_of_its_cluster() {
    let scaled = |value: &str, replicas: i64| json!({"metadata": {"labels": {"resourcetemplate.karmada.io/retain-replicas": value}}, "spec": {"replicas": replicas}});
    let token = json!({"type": "kubernetes.io/service-account-token", "data": {"token": "YQ=="}});
    for (api_version, kind, desired, observed, expected) in [
        (
            "apps/v1",
            "Deployment",
            scaled("true", 1),
            json!({"spec": {"replicas": 5}}),
            scaled("true", 5),
        ),
        (
            "apps/v1",
            "Deployment",
            scaled("false", 1),
            json!({"spec": {"replicas": 5}}),
            scaled("false", 1),
        ),
        (
            "apps/v1",
            "StatefulSet",
            scaled("true", 1),
            json!({"spec": {"replicas": 5}}),
            scaled("true", 1),
        ),
        (
            "v1",
            "Pod",
            json!({"spec": {"nodeName": "old", "containers": [{"name": "a", "image": "2"}, {"name": "b", "volumeMounts": [{"name": "x"}]}, {"name": "new"}]}}),
            json!({"spec": {
                "serviceAccountName": "default", "volumes": [{"name": "token"}], "hostNetwork": true,
                "containers": [{"name": "b"}, {"name": "a", "image": "1", "volumeMounts": [{"name": "token"}]}],
            }}),
            json!({"spec": {
                "serviceAccountName": "default", "volumes": [{"name": "token"}],
                "containers": [{"name": "a", "image": "2", "volumeMounts": [{"name": "token"}]}, {"name": "b"}, {"name": "new"}],
            }}),
        ),
        (
            "v1",
            "Pod",
            json!({"spec": {"initContainers": [{"name": "a"}]}}),
            json!({"spec": {"nodeName": "n", "initContainers": [{"name": "a", "volumeMounts": [{"name": "token"}]}]}}),
            json!({"spec": {"nodeName": "n", "initContainers": [{"name": "a", "volumeMounts": [{"name": "token"}]}]}}),
        ),
        (
            "v1",
            "Service",
            json!({}),
            json!({"spec": {"healthCheckNodePort": 30000, "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"]}}),
            json!({"spec": {"healthCheckNodePort": 30000, "clusterIP": "10.0.0.1"}}),
        ),
        (
            "v1",
            "Service",
            json!({"spec": {"clusterIP": "None"}}),
            json!({"spec": {"healthCheckNodePort": 0, "clusterIP": ""}}),
            json!({"spec": {"clusterIP": "None"}}),
        ),
        (
            "v1",
            "ServiceAccount",
            json!({"secrets": [{"name": "b"}], "imagePullSecrets": null}),
            json!({"secrets": [{"name": "a"}, {"name": "b"}], "imagePullSecrets": [{"name": "c"}]}),
            json!({"secrets": [{"name": "b"}, {"name": "a"}], "imagePullSecrets": [{"name": "c"}]}),
        ),
        (
            "v1",
            "ServiceAccount",
            json!({}),
            json!({"secrets": []}),
            json!({}),
        ),
        (
            "v1",
            "PersistentVolumeClaim",
            json!({"spec": {}}),
            json!({"spec": {"volumeName": "v"}}),
            json!({"spec": {"volumeName": "v"}}),
        ),
        (
            "v1",
            "PersistentVolumeClaim",
            json!({"spec": {"volumeName": "v"}}),
            json!({"spec": {"volumeName": ""}}),
            json!({"spec": {"volumeName": "v"}}),
        ),
        (
            "v1",
            "PersistentVolume",
            json!({}),
            json!({"spec": {"claimRef": {"name": "c"}}}),
            json!({"spec": {"claimRef": {"name": "c"}}}),
        ),
        (
            "v1",
            "PersistentVolume",
            json!({}),
            json!({"spec": {}}),
            json!({}),
        ),
        (
            "batch/v1",
            "Job",
            json!({"spec": {"template": {"metadata": {"labels": {"app": "a"}}}}}),
            json!({"spec": {"selector": {"matchLabels": {"uid": "1"}}, "template": {"metadata": {"labels": {"uid": "1"}}}}}),
            json!({"spec": {"selector": {"matchLabels": {"uid": "1"}}, "template": {"metadata": {"labels": {"uid": "1"}}}}}),
        ),
        (
            "v1",
            "Secret",
            json!({"type": "kubernetes.io/service-account-token"}),
            token.clone(),
            token.clone(),
        ),
        (
            "v1",
            "Secret",
            json!({"type": "Opaque", "data": {"a": "Yg=="}}),
            token.clone(),
            json!({"type": "Opaque", "data": {"a": "Yg=="}}),
        ),
        (
            "v1",
            "ConfigMap",
            json!({"data": {}}),
            json!({"data": {"a": "b"}}),
            json!({"data": {}}),
        ),
    ] {
        let retained = retain(api_version, kind, &desired, &observed).await;
        assert_eq!(retained, expected, "{kind} {desired} {observed}");
    }
}

#[test]
fn invalid_kept_values_are_reported() {
    let scaled = json!({"metadata": {"labels": {"resourcetemplate.karmada.io/retain-replicas": "true"}}});
    for (api_version, kind, mut desired, observed, message) in [
        (
            "apps/v1",
            "Deployment",
            scaled,
            json!({"spec": {}}),
            "observed object: .spec.replicas not found",
        ),
        (
            "v1",
            "Service",
            json!({"spec": []}),
            json!({"spec": {"clusterIP": 1}}),
            "observed object: .spec.clusterIP is not a string",
        ),
        (
            "v1",
            "Service",
            json!({"spec": "x"}),
            json!({"spec": {"clusterIP": "10.0.0.1"}}),
            "desired object: .spec is not an object",
        ),
        (
            "v1",
            "Pod",
            json!({"spec": {"containers": [{"name": 1}]}}),
            json!({}),
            "desired object: .spec.containers[0].name is not a string",
        ),
        (
            "v1",
            "ServiceAccount",
            json!({}),
            json!({"secrets": {"a": 1}}),
            "observed object: .secrets is not a list",
        ),
    ] {
        let error = rule(api_version, kind).unwrap()(&mut desired, &observed).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
}
