//! Validation of built-in kinds.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::webhooks;
use crate::{
    admission,
    field::{FieldError, Violation},
};

/// Returns the errors of an object; `old` is the object that it replaces.
pub fn validate(kind: &str, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match kind {
        "ConfigMap" => config_map(object, old, &mut errors),
        "Deployment" | "ReplicaSet" => workload(object, old, &mut errors),
        "Lease" => lease(&object["spec"], &mut errors),
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
            webhooks::validate(object, &mut errors);
        }
        "Pod" => containers(&object["spec"], "spec", &mut errors),
        "RoleBinding" | "ClusterRoleBinding" => immutable(
            "roleRef",
            &object["roleRef"],
            old.map(|old| &old["roleRef"]),
            &mut errors,
        ),
        "Secret" => secret(object, old, &mut errors),
        "Service" => service(object, old, &mut errors),
        _ => {}
    }
    errors
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn immutable(field: &str, new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    if old.is_some_and(|old| old != new) {
        errors.push(FieldError::new(
            field,
            Violation::Invalid(new.clone()),
            "field is immutable",
        ));
    }
}

fn check_immutable_data(object: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let Some(old) = old.filter(|old| old["immutable"] == true) else {
        return;
    };
    for field in ["data", "binaryData"] {
        if object[field] != old[field] {
            errors.push(FieldError::new(
                field,
                Violation::Forbidden,
                "field is immutable when `immutable` is set",
            ));
        }
    }
}

fn keys(object: &Value, field: &str, errors: &mut Vec<FieldError>) {
    for key in object[field]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, _)| key)
    {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if key.is_empty()
            || key.len() > 253
            || !key.chars().all(allowed)
            || key == "."
            || key.starts_with("..")
        {
            let detail = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  \
                          or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
            errors.push(FieldError::new(
                format!("{field}[{key}]"),
                Violation::Invalid(json!(key)),
                detail,
            ));
        }
    }
}

fn config_map(object: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    keys(object, "data", errors);
    keys(object, "binaryData", errors);
    check_immutable_data(object, old, errors);
}

fn secret(object: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    keys(object, "data", errors);
    if object["type"] == "kubernetes.io/tls" {
        for key in ["tls.crt", "tls.key"] {
            if object["data"][key].is_null() {
                errors.push(FieldError::new(format!("data[{key}]"), Violation::Required, ""));
            }
        }
    }
    immutable("type", &object["type"], old.map(|old| &old["type"]), errors);
    check_immutable_data(object, old, errors);
}

fn lease(spec: &Value, errors: &mut Vec<FieldError>) {
    for (field, least, detail) in [
        ("leaseDurationSeconds", 1, "must be greater than 0"),
        ("leaseTransitions", 0, "must be greater than or equal to 0"),
    ] {
        if spec[field].as_i64().is_some_and(|number| number < least) {
            let fault = Violation::Invalid(spec[field].clone());
            errors.push(FieldError::new(format!("spec.{field}"), fault, detail));
        }
    }
}

fn port(field: &str, value: &Value, errors: &mut Vec<FieldError>) {
    if !value.as_i64().is_some_and(|port| (1..=65535).contains(&port)) {
        let detail = "must be between 1 and 65535, inclusive";
        errors.push(FieldError::new(field, Violation::Invalid(value.clone()), detail));
    }
}

fn service(object: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    if name.len() > 63 || name.contains('.') || !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        let detail = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
                      character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
                      validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
        errors.push(FieldError::new(
            "metadata.name",
            Violation::Invalid(json!(name)),
            detail,
        ));
    }
    let spec = &object["spec"];
    let ports = list(&spec["ports"]);
    if ports.is_empty() && spec["type"] != "ExternalName" && spec["clusterIP"] != "None" {
        errors.push(FieldError::new("spec.ports", Violation::Required, ""));
    }
    let mut names = BTreeSet::new();
    let mut numbers = BTreeSet::new();
    for (index, entry) in ports.iter().enumerate() {
        let field = format!("spec.ports[{index}]");
        let name = entry["name"].as_str().unwrap_or_default();
        if name.is_empty() && ports.len() > 1 {
            errors.push(FieldError::new(format!("{field}.name"), Violation::Required, ""));
        }
        if !name.is_empty() && !names.insert(name) {
            errors.push(FieldError::new(
                format!("{field}.name"),
                Violation::Duplicate(json!(name)),
                "",
            ));
        }
        port(&format!("{field}.port"), &entry["port"], errors);
        if entry["targetPort"].is_number() {
            port(&format!("{field}.targetPort"), &entry["targetPort"], errors);
        }
        if !numbers.insert((entry["port"].to_string(), entry["protocol"].to_string())) {
            let duplicate = json!({"protocol": entry["protocol"], "port": entry["port"]});
            errors.push(FieldError::new(field, Violation::Duplicate(duplicate), ""));
        }
    }
    let before = old.map(|old| &old["spec"]["clusterIP"]);
    if spec["type"] != "ExternalName" && before.is_some_and(Value::is_string) {
        immutable("spec.clusterIP", &spec["clusterIP"], before, errors);
    }
}

fn containers(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if list(&spec["containers"]).is_empty() {
        errors.push(FieldError::new(
            format!("{path}.containers"),
            Violation::Required,
            "",
        ));
    }
    let volumes: BTreeSet<&str> = list(&spec["volumes"])
        .iter()
        .filter_map(|volume| volume["name"].as_str())
        .collect();
    let mut names = BTreeSet::new();
    for kind in ["initContainers", "containers"] {
        for (index, container) in list(&spec[kind]).iter().enumerate() {
            let field = format!("{path}.{kind}[{index}]");
            let name = container["name"].as_str().unwrap_or_default();
            if name.is_empty() {
                errors.push(FieldError::new(format!("{field}.name"), Violation::Required, ""));
            } else if !names.insert(name) {
                errors.push(FieldError::new(
                    format!("{field}.name"),
                    Violation::Duplicate(json!(name)),
                    "",
                ));
            }
            if container["image"].as_str().unwrap_or_default().is_empty() {
                errors.push(FieldError::new(format!("{field}.image"), Violation::Required, ""));
            }
            let mut paths = BTreeSet::new();
            for (mount_index, mount) in list(&container["volumeMounts"]).iter().enumerate() {
                let field = format!("{field}.volumeMounts[{mount_index}]");
                let name = mount["name"].as_str().unwrap_or_default();
                if !volumes.contains(name) {
                    errors.push(FieldError::new(
                        format!("{field}.name"),
                        Violation::NotFound(json!(name)),
                        "",
                    ));
                }
                let place = mount["mountPath"].as_str().unwrap_or_default();
                if !paths.insert(place) {
                    let detail = "must be unique";
                    errors.push(FieldError::new(
                        format!("{field}.mountPath"),
                        Violation::Invalid(json!(place)),
                        detail,
                    ));
                }
            }
            for (port_index, entry) in list(&container["ports"]).iter().enumerate() {
                port(
                    &format!("{field}.ports[{port_index}].containerPort"),
                    &entry["containerPort"],
                    errors,
                );
            }
        }
    }
}

fn workload(object: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    let spec = &object["spec"];
    if spec["replicas"].as_i64().is_some_and(|replicas| replicas < 0) {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::new(
            "spec.replicas",
            Violation::Invalid(spec["replicas"].clone()),
            detail,
        ));
    }
    if !spec["selector"].is_object() {
        errors.push(FieldError::new("spec.selector", Violation::Required, ""));
    } else if spec["selector"] == json!({}) {
        let detail = "empty selector is invalid for deployment";
        errors.push(FieldError::new(
            "spec.selector",
            Violation::Invalid(json!({})),
            detail,
        ));
    } else if !admission::selector_matches(&spec["selector"], &spec["template"]["metadata"]["labels"]) {
        let labels = spec["template"]["metadata"]["labels"].clone();
        let detail = "`selector` does not match template `labels`";
        errors.push(FieldError::new(
            "spec.template.metadata.labels",
            Violation::Invalid(labels),
            detail,
        ));
    }
    immutable(
        "spec.selector",
        &spec["selector"],
        old.map(|old| &old["spec"]["selector"]),
        errors,
    );
    containers(&spec["template"]["spec"], "spec.template.spec", errors);
    if spec["strategy"]["type"] == "Recreate" && spec["strategy"]["rollingUpdate"].is_object() {
        let detail = "may not be specified when strategy `type` is 'Recreate'";
        errors.push(FieldError::new(
            "spec.strategy.rollingUpdate",
            Violation::Forbidden,
            detail,
        ));
    }
}
