//! What objects need beside them.

use serde_json::{Value, json};

use crate::{
    answer::DependentObjectReference,
    fields::{FieldTypeError, Fields},
    pod::dependencies::references,
};

/// Lists it for the objects of one kind.
pub(super) type DependencyRule = fn(&Fields<'_>) -> Result<Vec<DependentObjectReference>, FieldTypeError>;

/// The rule for a kind.
pub(super) fn rule(api_version: &str, kind: &str) -> Option<DependencyRule> {
    Some(match (api_version, kind) {
        ("apps/v1", "Deployment" | "ReplicaSet" | "DaemonSet") | ("batch/v1", "Job") => {
            |workload| of_template(workload, "spec.template")
        }
        ("apps/v1", "StatefulSet") => of_stateful_set,
        ("batch/v1", "CronJob") => |cron_job| of_template(cron_job, "spec.jobTemplate.spec.template"),
        ("v1", "Pod") => |pod| Ok(references(pod.value(), namespace(pod)?)),
        ("networking.k8s.io/v1", "Ingress") => of_ingress,
        ("multicluster.x-k8s.io/v1alpha1", "ServiceImport") => of_service_import,
        _ => return None,
    })
}

fn of_template(workload: &Fields<'_>, names: &str) -> Result<Vec<DependentObjectReference>, FieldTypeError> {
    let namespace = namespace(workload)?;
    let template = workload.at(names)?;
    Ok(template
        .map(|template| references(template.value(), namespace))
        .unwrap_or_default())
}

/// It makes the claims of its templates itself, one for each Pod.
fn of_stateful_set(stateful_set: &Fields<'_>) -> Result<Vec<DependentObjectReference>, FieldTypeError> {
    let mut own = Vec::new();
    for template in stateful_set.items("spec.volumeClaimTemplates")? {
        own.extend(template.text("metadata.name")?);
    }
    let mut references = of_template(stateful_set, "spec.template")?;
    references.retain(|reference| {
        let name = reference.name.as_deref().unwrap_or_default();
        reference.kind != "PersistentVolumeClaim" || !own.contains(&name)
    });
    Ok(references)
}

/// The certificates; a host that names none gets that of whoever serves all of them.
fn of_ingress(ingress: &Fields<'_>) -> Result<Vec<DependentObjectReference>, FieldTypeError> {
    let namespace = namespace(ingress)?;
    let mut references = Vec::new();
    for tls in ingress.items("spec.tls")? {
        let Some(secret) = tls.text("secretName")?.filter(|secret| !secret.is_empty()) else {
            continue;
        };
        let reference = DependentObjectReference {
            api_version: "v1".to_owned(),
            kind: "Secret".to_owned(),
            namespace: namespace.map(str::to_owned),
            name: Some(secret.to_owned()),
            label_selector: None,
        };
        if !references.contains(&reference) {
            references.push(reference);
        }
    }
    Ok(references)
}

/// The Service that stands for it in each cluster, as Karmada names it, and its endpoints.
fn of_service_import(import: &Fields<'_>) -> Result<Vec<DependentObjectReference>, FieldTypeError> {
    let namespace = namespace(import)?.map(str::to_owned);
    let derived = format!("derived-{}", import.text("metadata.name")?.unwrap_or_default());
    let selector: Value = json!({"matchLabels": {"kubernetes.io/service-name": derived}});
    Ok(vec![
        DependentObjectReference {
            api_version: "v1".to_owned(),
            kind: "Service".to_owned(),
            namespace: namespace.clone(),
            name: Some(derived),
            label_selector: None,
        },
        DependentObjectReference {
            api_version: "discovery.k8s.io/v1".to_owned(),
            kind: "EndpointSlice".to_owned(),
            namespace,
            name: None,
            label_selector: Some(selector),
        },
    ])
}

fn namespace<'a>(object: &Fields<'a>) -> Result<Option<&'a str>, FieldTypeError> {
    object.text("metadata.namespace")
}
