//! Dependencies of Kubernetes' own kinds.

use serde_json::{Value, json};

use crate::{
    answer::DependentObjectReference,
    fields::{FieldTypeError, Fields},
    pod::dependencies::references,
};

/// Lists the dependencies of objects of one kind.
pub(super) type DependencyRule = fn(&Fields<'_>) -> Result<Vec<DependentObjectReference>, FieldTypeError>;

pub(super) fn rule(api_version: &str, kind: &str) -> Option<DependencyRule> {
    Some(match (api_version, kind) {
        ("apps/v1", "Deployment" | "ReplicaSet" | "DaemonSet") | ("batch/v1", "Job") => {
            |workload| template_dependencies(workload, "spec.template")
        }
        ("apps/v1", "StatefulSet") => stateful_set_dependencies,
        ("batch/v1", "CronJob") => {
            |cron_job| template_dependencies(cron_job, "spec.jobTemplate.spec.template")
        }
        ("v1", "Pod") => |pod| Ok(references(pod.value(), namespace(pod)?)),
        ("networking.k8s.io/v1", "Ingress") => ingress_dependencies,
        ("multicluster.x-k8s.io/v1alpha1", "ServiceImport") => service_import_dependencies,
        _ => return None,
    })
}

fn template_dependencies(
    workload: &Fields<'_>,
    names: &str,
) -> Result<Vec<DependentObjectReference>, FieldTypeError> {
    let namespace = namespace(workload)?;
    let template = workload.at(names)?;
    Ok(template
        .map(|template| references(template.value(), namespace))
        .unwrap_or_default())
}

/// Claims of the volumeClaimTemplates are excluded, because the controller creates one for each Pod.
fn stateful_set_dependencies(
    stateful_set: &Fields<'_>,
) -> Result<Vec<DependentObjectReference>, FieldTypeError> {
    let mut own = Vec::new();
    for template in stateful_set.items("spec.volumeClaimTemplates")? {
        own.extend(template.text("metadata.name")?);
    }
    let mut references = template_dependencies(stateful_set, "spec.template")?;
    references.retain(|reference| {
        let name = reference.name.as_deref().unwrap_or_default();
        reference.kind != "PersistentVolumeClaim" || !own.contains(&name)
    });
    Ok(references)
}

/// The TLS Secrets; a host without one uses the ingress controller's default certificate.
fn ingress_dependencies(ingress: &Fields<'_>) -> Result<Vec<DependentObjectReference>, FieldTypeError> {
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

/// The derived Service in each cluster, named as by Karmada, and its EndpointSlices.
fn service_import_dependencies(import: &Fields<'_>) -> Result<Vec<DependentObjectReference>, FieldTypeError> {
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
