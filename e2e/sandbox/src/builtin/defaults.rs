//! Defaults of built-in kinds.

use serde_json::{Value, json};

use super::{
    fields::{each, set},
    pods,
};
use crate::{crd, webhook::default_client_config};

/// Sets the defaults of the real server, and removes the fields that it drops.
pub fn default(group: &str, kind: &str, object: &mut Value) {
    match (group, kind) {
        ("", "Namespace") => namespace(object),
        ("", "Pod") => {
            pods::spec(&mut object["spec"]);
            set(&mut object["spec"], "serviceAccountName", json!("default"));
            set(&mut object["spec"], "enableServiceLinks", json!(true));
            set(
                object,
                "status",
                json!({"phase": "Pending", "qosClass": "BestEffort"}),
            );
        }
        ("", "Secret") => secret(object),
        ("", "Service") => service(object),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration") => webhooks(object, false),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration") => webhooks(object, true),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => crd::default(object),
        ("apiregistration.k8s.io", "APIService") => default_client_config(object.pointer_mut("/spec")),
        ("apps", "Deployment") => deployment(object),
        ("apps", "ReplicaSet") => {
            set(&mut object["spec"], "replicas", json!(1));
            pods::template(&mut object["spec"]["template"]);
        }
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => binding(object),
        ("scheduling.k8s.io", "PriorityClass") => {
            set(object, "preemptionPolicy", json!("PreemptLowerPriority"));
        }
        ("storage.k8s.io", "StorageClass") => {
            set(object, "reclaimPolicy", json!("Delete"));
            set(object, "volumeBindingMode", json!("Immediate"));
        }
        _ => {}
    }
}

fn namespace(object: &mut Value) {
    let name = object["metadata"]["name"].clone();
    if object["metadata"]["deletionTimestamp"].is_null() {
        set(&mut object["spec"], "finalizers", json!(["kubernetes"]));
    }
    set(&mut object["status"], "phase", json!("Active"));
    let labels = &mut object["metadata"]["labels"];
    if labels.is_null() {
        *labels = json!({});
    }
    labels["kubernetes.io/metadata.name"] = name;
}

/// `stringData` is write-only: it is merged into `data`.
fn secret(object: &mut Value) {
    use base64::{Engine, engine::general_purpose::STANDARD};
    set(object, "type", json!("Opaque"));
    let plain = object
        .as_object_mut()
        .and_then(|fields| fields.remove("stringData"));
    for (key, value) in plain.as_ref().and_then(Value::as_object).into_iter().flatten() {
        if !object["data"].is_object() {
            object["data"] = json!({});
        }
        object["data"][key] = json!(STANDARD.encode(value.as_str().unwrap_or_default()));
    }
}

fn service(object: &mut Value) {
    let spec = &mut object["spec"];
    set(spec, "type", json!("ClusterIP"));
    set(spec, "sessionAffinity", json!("None"));
    if spec["type"] != "ExternalName" {
        set(spec, "internalTrafficPolicy", json!("Cluster"));
    }
    for port in each(spec, "ports") {
        set(port, "protocol", json!("TCP"));
        let number = port["port"].clone();
        if port["targetPort"].is_null() || port["targetPort"] == 0 {
            port["targetPort"] = number;
        }
    }
}

fn webhooks(object: &mut Value, mutating: bool) {
    for webhook in each(object, "webhooks") {
        set(webhook, "failurePolicy", json!("Fail"));
        set(webhook, "matchPolicy", json!("Equivalent"));
        set(webhook, "timeoutSeconds", json!(10));
        set(webhook, "namespaceSelector", json!({}));
        set(webhook, "objectSelector", json!({}));
        if mutating {
            set(webhook, "reinvocationPolicy", json!("Never"));
        }
        default_client_config(webhook.get_mut("clientConfig"));
        for rule in each(webhook, "rules") {
            set(rule, "scope", json!("*"));
        }
    }
}

fn deployment(object: &mut Value) {
    let spec = &mut object["spec"];
    set(spec, "replicas", json!(1));
    set(spec, "revisionHistoryLimit", json!(10));
    set(spec, "progressDeadlineSeconds", json!(600));
    set(&mut spec["strategy"], "type", json!("RollingUpdate"));
    if spec["strategy"]["type"] == "RollingUpdate" {
        set(
            &mut spec["strategy"]["rollingUpdate"],
            "maxUnavailable",
            json!("25%"),
        );
        set(&mut spec["strategy"]["rollingUpdate"], "maxSurge", json!("25%"));
    }
    pods::template(&mut spec["template"]);
}

fn binding(object: &mut Value) {
    let rbac = "rbac.authorization.k8s.io";
    set(&mut object["roleRef"], "apiGroup", json!(rbac));
    for subject in each(object, "subjects") {
        if subject["kind"] != "ServiceAccount" {
            set(subject, "apiGroup", json!(rbac));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_trust_bundle_is_removed() {
        let config = json!({"service": {"namespace": "n", "name": "s"}, "caBundle": ""});
        for (group, kind, mut object, pointer) in [
            (
                "admissionregistration.k8s.io",
                "ValidatingWebhookConfiguration",
                json!({"webhooks": [{"clientConfig": config}]}),
                "/webhooks/0/clientConfig",
            ),
            (
                "apiextensions.k8s.io",
                "CustomResourceDefinition",
                json!({"spec": {"conversion": {"webhook": {"clientConfig": config}}}}),
                "/spec/conversion/webhook/clientConfig",
            ),
            (
                "apiregistration.k8s.io",
                "APIService",
                json!({"spec": config}),
                "/spec",
            ),
        ] {
            default(group, kind, &mut object);
            let expected = json!({"service": {"namespace": "n", "name": "s", "port": 443}});
            assert_eq!(object.pointer(pointer), Some(&expected), "{kind}");
        }
    }
}
