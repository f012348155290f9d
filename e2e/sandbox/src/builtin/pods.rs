//! Defaults of pods and their templates.

use serde_json::{Value, json};

use super::fields::{each, set};

/// Sets the defaults of a pod template.
pub(super) fn template(template: &mut Value) {
    set(template, "metadata", json!({}));
    if template["metadata"].is_object() {
        // The real server writes `creationTimestamp: null` into every template.
        set(&mut template["metadata"], "creationTimestamp", Value::Null);
    }
    spec(&mut template["spec"]);
}

/// Sets the defaults of a pod's `spec`.
pub(super) fn spec(spec: &mut Value) {
    set(spec, "restartPolicy", json!("Always"));
    set(spec, "dnsPolicy", json!("ClusterFirst"));
    set(spec, "schedulerName", json!("default-scheduler"));
    set(spec, "securityContext", json!({}));
    set(spec, "terminationGracePeriodSeconds", json!(30));
    // The deprecated field is kept in sync with its successor.
    if spec["serviceAccountName"].is_string() {
        spec["serviceAccount"] = spec["serviceAccountName"].clone();
    }
    for field in ["containers", "initContainers"] {
        each(spec, field).for_each(container);
    }
    for volume in each(spec, "volumes") {
        for source in ["secret", "configMap", "projected", "downwardAPI"] {
            if volume[source].is_object() {
                set(&mut volume[source], "defaultMode", json!(420));
            }
        }
        let sources = if volume["projected"].is_object() {
            Some(&mut volume["projected"])
        } else {
            None
        };
        for source in sources
            .into_iter()
            .flat_map(|projected| each(projected, "sources"))
        {
            if source["serviceAccountToken"].is_object() {
                set(
                    &mut source["serviceAccountToken"],
                    "expirationSeconds",
                    json!(3600),
                );
            }
        }
    }
}

fn container(container: &mut Value) {
    set(container, "terminationMessagePath", json!("/dev/termination-log"));
    set(container, "terminationMessagePolicy", json!("File"));
    set(container, "resources", json!({}));
    let image = container["image"].as_str().unwrap_or_default();
    let name = image.rsplit('/').next().unwrap_or_default();
    let floats = !image.contains('@') && (!name.contains(':') || name.ends_with(":latest"));
    set(
        container,
        "imagePullPolicy",
        json!(if floats { "Always" } else { "IfNotPresent" }),
    );
    for port in each(container, "ports") {
        set(port, "protocol", json!("TCP"));
    }
    for variable in each(container, "env") {
        if variable["valueFrom"]["fieldRef"].is_object() {
            set(&mut variable["valueFrom"]["fieldRef"], "apiVersion", json!("v1"));
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if !container[probe].is_object() {
            continue;
        }
        let probe = &mut container[probe];
        for (field, value) in [
            ("timeoutSeconds", 1),
            ("periodSeconds", 10),
            ("successThreshold", 1),
            ("failureThreshold", 3),
        ] {
            set(probe, field, json!(value));
        }
        if probe["httpGet"].is_object() {
            set(&mut probe["httpGet"], "scheme", json!("HTTP"));
            set(&mut probe["httpGet"], "path", json!("/"));
        }
    }
}
