use serde_json::{Value, json};

use super::{of_kind, resource_interpreter};
use crate::{NativeInterpreter, fields::Fields, native::dependencies::rule};

async fn dependencies(api_version: &str, kind: &str, object: &Value) -> Value {
    let object = of_kind(api_version, kind, object);
    json!(
        resource_interpreter(NativeInterpreter::new(jiff::Timestamp::now))
            .dependencies(&object)
            .await
            .unwrap()
    )
}

fn reference(kind: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": kind, "namespace": "n", "name": name})
}

#[tokio::test]
async fn workloads_depend_on_references_of_their_pods() {
    let template = json!({"spec": {
        "serviceAccountName": "a",
        "volumes": [{"secret": {"secretName": "s"}}, {"persistentVolumeClaim": {"claimName": "data"}}],
    }});
    let all = json!([
        reference("Secret", "s"),
        reference("ServiceAccount", "a"),
        reference("PersistentVolumeClaim", "data")
    ]);
    let with = |spec: Value| json!({"metadata": {"name": "x", "namespace": "n"}, "spec": spec});
    let of_template = with(json!({"template": template}));
    for (api_version, kind, object) in [
        ("apps/v1", "Deployment", &of_template),
        ("apps/v1", "ReplicaSet", &of_template),
        ("apps/v1", "DaemonSet", &of_template),
        ("apps/v1", "StatefulSet", &of_template),
        ("batch/v1", "Job", &of_template),
        (
            "batch/v1",
            "CronJob",
            &with(json!({"jobTemplate": {"spec": {"template": template}}})),
        ),
        ("v1", "Pod", &with(template["spec"].clone())),
    ] {
        assert_eq!(dependencies(api_version, kind, object).await, all, "{kind}");
    }
    assert_eq!(
        dependencies("apps/v1beta1", "Deployment", &of_template).await,
        json!([])
    );
    assert_eq!(dependencies("apps/v1", "Deployment", &json!({})).await, json!([]));
}

#[tokio::test]
async fn claim_templates_are_not_dependencies() {
    let claim = |name: &str| json!({"persistentVolumeClaim": {"claimName": name}});
    let object = json!({"metadata": {"namespace": "n"}, "spec": {
        "template": {"spec": {"volumes": [claim("data"), claim("shared"), {"configMap": {"name": "data"}}]}},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}}],
    }});
    assert_eq!(
        dependencies("apps/v1", "StatefulSet", &object).await,
        json!([
            reference("ConfigMap", "data"),
            reference("PersistentVolumeClaim", "shared")
        ])
    );
}

#[tokio::test]
async fn an_ingress_depends_on_its_certificates() {
    let tls = json!([{"secretName": "b"}, {"hosts": ["a"]}, {"secretName": ""}, {"secretName": "a"}, {"secretName": "b"}]);
    let object = json!({"metadata": {"namespace": "n"}, "spec": {"tls": tls}});
    assert_eq!(
        dependencies("networking.k8s.io/v1", "Ingress", &object).await,
        json!([reference("Secret", "b"), reference("Secret", "a")])
    );
}

#[tokio::test]
async fn a_service_import_depends_on_derived_objects() {
    let object = json!({"metadata": {"name": "web", "namespace": "n"}});
    assert_eq!(
        dependencies("multicluster.x-k8s.io/v1alpha1", "ServiceImport", &object).await,
        json!([
            reference("Service", "derived-web"),
            {
                "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "namespace": "n",
                "labelSelector": {"matchLabels": {"kubernetes.io/service-name": "derived-web"}},
            },
        ])
    );
}

#[test]
fn a_wrong_type_is_reported() {
    for (api_version, kind, object, message) in [
        (
            "apps/v1",
            "Deployment",
            json!({"spec": 1}),
            ".spec is not an object",
        ),
        (
            "networking.k8s.io/v1",
            "Ingress",
            json!({"spec": {"tls": [{"secretName": 1}]}}),
            ".spec.tls[0].secretName is not a string",
        ),
        (
            "apps/v1",
            "StatefulSet",
            json!({"spec": {"volumeClaimTemplates": 1}}),
            ".spec.volumeClaimTemplates is not a list",
        ),
    ] {
        let error = rule(api_version, kind).unwrap()(&Fields::new(&object)).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
}
