//! A small bundle for tests.

use serde_json::{Value, json};
use windlass_object::ObjectKey;

use super::{
    DeploymentConfig,
    options::{CertificateProvider, ConversionMode, InstallOptions},
};
use crate::parse::{Bundle, Manifest};

/// A bundle for all namespaces with one Deployment, all three types of webhook and one
/// CustomResourceDefinition.
pub(crate) fn bundle() -> Bundle {
    Bundle {
        package: "widgets".into(),
        channels: vec!["stable".into()],
        csv: manifest(csv()),
        dependencies: None,
        crds: vec![manifest(crd())],
        others: Vec::new(),
    }
}

/// Options for all namespaces with certificates by Windlass.
pub(crate) fn options(namespace: &str) -> InstallOptions {
    InstallOptions {
        namespace: namespace.to_owned(),
        watch_namespaces: Vec::new(),
        config: DeploymentConfig::default(),
        certificates: CertificateProvider::default(),
        conversion: ConversionMode::default(),
        blocking_webhooks: false,
    }
}

/// A manifest with `object`, as if read from a file.
pub(crate) fn manifest(object: Value) -> Manifest {
    Manifest {
        file: "manifests/object.yaml".into(),
        document: None,
        path: "$".into(),
        object,
    }
}

/// An ExtensionConfig that calls a Service.
pub(crate) fn extension_config(service: &Value) -> Manifest {
    manifest(json!({
        "apiVersion": "runtime.cluster.x-k8s.io/v1beta2", "kind": "ExtensionConfig", "metadata": {"name": "hooks"},
        "spec": {"clientConfig": {"service": service}},
    }))
}

/// The kinds and names of the objects, in order.
pub(crate) fn keys(objects: &[Value]) -> Vec<String> {
    objects
        .iter()
        .filter_map(ObjectKey::from_object)
        .map(|key| key.to_string())
        .collect()
}

fn csv() -> Value {
    json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {"name": "widgets.v0.1.0", "annotations": {"capabilities": "Basic Install"}},
        "spec": {
            "version": "0.1.0",
            "installModes": [{"type": "AllNamespaces", "supported": true}],
            "install": {"strategy": "deployment", "spec": {
                "deployments": [{"name": "widgets.controller", "label": {"app": "widgets"}, "spec": {
                    "replicas": 1,
                    "selector": {"matchLabels": {"app": "widgets"}},
                    "template": {
                        "metadata": {"labels": {"app": "widgets", "tier": "control"}},
                        "spec": {
                            "serviceAccountName": "widgets",
                            "containers": [{
                                "name": "manager",
                                "image": "registry.example.com/widgets:0.1.0",
                                "ports": [{"name": "webhook-server", "containerPort": 9443}],
                            }],
                        },
                    },
                }}],
                "clusterPermissions": [{"serviceAccountName": "widgets", "rules": [
                    {"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["get", "list", "watch"]},
                ]}],
            }},
            "webhookdefinitions": [
                {
                    "type": "ConversionWebhook",
                    "generateName": "cwidgets.example.com",
                    "deploymentName": "widgets.controller",
                    "containerPort": 443,
                    "targetPort": 9443,
                    "webhookPath": "/convert",
                    "conversionCRDs": ["widgets.example.com"],
                    "admissionReviewVersions": ["v1", "v1beta1"],
                    "sideEffects": "None",
                },
                {
                    "type": "MutatingAdmissionWebhook",
                    "generateName": "mwidget.example.com-",
                    "deploymentName": "widgets.controller",
                    "targetPort": 9443,
                    "admissionReviewVersions": ["v1"],
                    "sideEffects": "None",
                    "reinvocationPolicy": "IfNeeded",
                    "timeoutSeconds": null,
                },
                {
                    "type": "ValidatingAdmissionWebhook",
                    "generateName": "vwidget.example.com",
                    "deploymentName": "widgets.controller",
                    "containerPort": 443,
                    "targetPort": "webhook-server",
                    "webhookPath": "/validate",
                    "failurePolicy": "Fail",
                    "reinvocationPolicy": "Never",
                    "admissionReviewVersions": ["v1"],
                    "sideEffects": "None",
                    "rules": [{
                        "operations": ["*"], "apiGroups": ["example.com"], "apiVersions": ["*"], "resources": ["widgets"],
                    }],
                },
            ],
        },
    })
}

fn crd() -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Widget", "plural": "widgets"},
            "scope": "Namespaced",
            "versions": [
                {"name": "v1alpha1", "served": true, "storage": false, "schema": schema},
                {"name": "v1", "served": true, "storage": true, "schema": schema},
            ],
        },
    })
}
