//! The Helm hook that removes the webhooks of policies before their server: otherwise writes would wait for a
//! missing server.

use serde_json::{Value, json};
use windlass_operator::admission::AdmissionService;

use super::{fill_in_pod, template::Template};
use crate::commands::manifests::{
    deployment,
    document::{Document, NAMESPACE, labels},
};

/// The name of all its objects.
const JOB: &str = "windlass-policies-disarming";

/// The Deployment of the policy server.
const SERVED: &str = AdmissionService::POLICIES.name;

/// The comment on the hook.
const COMMENT: &str = "Removes the webhooks of policies before Windlass is uninstalled or policies are turned off. Deleted afterwards.";

/// The condition of the hook: the Deployment belongs to this release.
const HEAD: &str = r#"{{- $service := lookup "v1" "Service" .Release.Namespace "windlass-policies" }}
{{- $isServed := eq .Release.Name (dig "metadata" "annotations" "meta.helm.sh/release-name" "" $service) }}
{{- if or .Values.policies.enabled $isServed }}
"#;

/// The events that run the hook.
const EVENT: &str = r#"{{ ternary "pre-delete" "pre-upgrade" .Values.policies.enabled }}"#;

/// Returns the template.
///
/// # Errors
///
/// When it cannot be written as YAML.
pub(super) fn text() -> anyhow::Result<String> {
    let documents = documents()
        .into_iter()
        .map(|(document, weight)| text_of(document, weight));
    let documents = documents.collect::<anyhow::Result<Vec<_>>>()?.join("---\n");
    Ok(format!("{HEAD}{documents}{{{{- end }}}}\n"))
}

fn text_of(mut document: Document, weight: &str) -> anyhow::Result<String> {
    let mut template = Template::default();
    let object = &mut document.object;
    object["metadata"]["annotations"] = json!({
        "helm.sh/hook": template.scalar(EVENT),
        "helm.sh/hook-weight": weight,
        "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded",
    });
    if object["kind"] == "Job" {
        fill_in_pod(&mut object["spec"]["template"]["spec"], &mut template);
    }
    Ok(template.text(&document.text()?))
}

/// Returns the objects of the hook, in order of creation.
pub(super) fn documents() -> [(Document, &'static str); 6] {
    let metadata = json!({ "name": JOB, "labels": labels() });
    let namespaced = json!({ "name": JOB, "namespace": NAMESPACE, "labels": labels() });
    let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": namespaced });
    let role = |kind: &str, metadata: &Value, rule: Value| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": kind,
            "metadata": metadata,
            "rules": [rule],
        })
    };
    let binding = |kind: &str, metadata: &Value, role: &str| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": kind,
            "metadata": metadata,
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": JOB },
            "subjects": [{ "kind": "ServiceAccount", "name": JOB, "namespace": NAMESPACE }],
        })
    };
    let service = json!({
        "apiGroups": [""], "resources": ["services"], "resourceNames": [SERVED], "verbs": ["get", "patch"],
    });
    let configurations = json!({
        "apiGroups": ["admissionregistration.k8s.io"],
        "resources": ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
        "resourceNames": [SERVED],
        "verbs": ["get", "delete"],
    });
    let rights = "-1";
    [
        (Document::commented(COMMENT, account), rights),
        (Document::new(role("Role", &namespaced, service)), rights),
        (Document::new(binding("RoleBinding", &namespaced, "Role")), rights),
        (
            Document::new(role("ClusterRole", &metadata, configurations)),
            rights,
        ),
        (
            Document::new(binding("ClusterRoleBinding", &metadata, "ClusterRole")),
            rights,
        ),
        (Document::new(job(&namespaced)), "0"),
    ]
}

fn job(metadata: &Value) -> Value {
    let mut pod =
        deployment::deployment_with_ports(JOB, &["policy", "disarm"], &[], &Value::Null)["spec"]["template"]
            .take();
    let spec = &mut pod["spec"];
    spec["restartPolicy"] = "OnFailure".into();
    for field in ["topologySpreadConstraints", "terminationGracePeriodSeconds"] {
        spec.as_object_mut().map(|spec| spec.shift_remove(field));
    }
    for field in ["lifecycle", "livenessProbe", "readinessProbe", "ports"] {
        let container = spec["containers"][0].as_object_mut();
        container.map(|container| container.shift_remove(field));
    }
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": { "backoffLimit": 3, "activeDeadlineSeconds": 240, "template": pod },
    })
}
