//! Values of observed objects to keep, for Kubernetes' own kinds.

use serde_json::{Map, Value};
use windlass_object::{JsonPath, json, object::label};

use crate::fields::{FieldTypeError, Fields};

/// Copies values from the observed object to the desired one, for one kind.
pub(super) type RetainRule = fn(&mut Value, &Value) -> Result<(), RetainError>;

/// Why values cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum RetainError {
    /// A field of the desired object has the wrong type.
    #[error("desired object: {0}")]
    Desired(#[source] FieldTypeError),
    /// A field of the observed object has the wrong type.
    #[error("observed object: {0}")]
    Observed(#[source] FieldTypeError),
    /// A field to keep is absent.
    #[error("observed object: {0} not found")]
    NotFound(JsonPath),
}

/// A label of objects that an autoscaler or another controller scales. Karmada's `RetainReplicasLabel`.
const RETAIN_REPLICAS: &str = "resourcetemplate.karmada.io/retain-replicas";

const SERVICE_ACCOUNT_TOKEN: &str = "kubernetes.io/service-account-token";

pub(super) fn rule(api_version: &str, kind: &str) -> Option<RetainRule> {
    Some(match (api_version, kind) {
        ("apps/v1", "Deployment") => retain_deployment,
        ("v1", "Pod") => retain_pod,
        ("v1", "Service") => retain_service,
        ("v1", "ServiceAccount") => retain_service_account,
        ("v1", "PersistentVolumeClaim") => {
            |desired, observed| retain_text(desired, observed, "spec.volumeName")
        }
        ("v1", "PersistentVolume") => |desired, observed| retain_object(desired, observed, "spec.claimRef"),
        ("batch/v1", "Job") => retain_job,
        ("v1", "Secret") => retain_secret,
        _ => return None,
    })
}

fn retain_deployment(desired: &mut Value, observed: &Value) -> Result<(), RetainError> {
    if label(desired, RETAIN_REPLICAS) != Some("true") {
        return Ok(());
    }
    let names = "spec.replicas";
    let replicas = Fields::new(observed)
        .integer(names)
        .map_err(RetainError::Observed)?;
    let replicas = replicas.ok_or_else(|| RetainError::NotFound(JsonPath::from_fields(names)))?;
    set(desired, names, replicas.into())
}

/// Values that the scheduler and the ServiceAccount admission plugin have set.
fn retain_pod(desired: &mut Value, observed: &Value) -> Result<(), RetainError> {
    let pod = Fields::new(observed);
    let text = |names| pod.text(names).map(|text| text.map(Value::from));
    for (names, kept) in [
        ("spec.nodeName", text("spec.nodeName")),
        ("spec.serviceAccountName", text("spec.serviceAccountName")),
        (
            "spec.volumes",
            pod.list("spec.volumes")
                .map(|volumes| volumes.cloned().map(Value::from)),
        ),
    ] {
        match kept.map_err(RetainError::Observed)? {
            Some(kept) => set(desired, names, kept)?,
            None => remove(desired, names)?,
        }
    }
    for containers in ["spec.containers", "spec.initContainers"] {
        retain_volume_mounts(desired, &pod, containers)?;
    }
    Ok(())
}

fn retain_volume_mounts(desired: &mut Value, observed: &Fields<'_>, names: &str) -> Result<(), RetainError> {
    let mut mounts = Vec::new();
    for container in observed.items(names).map_err(RetainError::Observed)? {
        let name = container.text("name").map_err(RetainError::Observed)?;
        let of_container = container.list("volumeMounts").map_err(RetainError::Observed)?;
        mounts.push((name, of_container));
    }
    let mut retained = Vec::new();
    for container in Fields::new(desired).items(names).map_err(RetainError::Desired)? {
        let name = container.text("name").map_err(RetainError::Desired)?;
        let known = mounts.iter().find(|(observed, _)| *observed == name);
        let mut container = container.value().clone();
        if let (Some((_, mounts)), Value::Object(container)) = (known, &mut container) {
            match mounts {
                Some(mounts) => container.insert("volumeMounts".to_owned(), Value::Array((*mounts).clone())),
                None => container.remove("volumeMounts"),
            };
        }
        retained.push(container);
    }
    match retained.is_empty() {
        true => Ok(()),
        false => set(desired, names, retained.into()),
    }
}

/// Allocated addresses and ports.
fn retain_service(desired: &mut Value, observed: &Value) -> Result<(), RetainError> {
    let names = "spec.healthCheckNodePort";
    let port = Fields::new(observed)
        .integer(names)
        .map_err(RetainError::Observed)?;
    if let Some(port) = port.filter(|port| *port > 0) {
        set(desired, names, port.into())?;
    }
    retain_text(desired, observed, "spec.clusterIP")
}

/// Secrets that controllers have added.
fn retain_service_account(desired: &mut Value, observed: &Value) -> Result<(), RetainError> {
    for names in ["secrets", "imagePullSecrets"] {
        let mut known = Vec::new();
        let mut union = Vec::new();
        let of_desired = Fields::new(desired).items(names).map_err(RetainError::Desired)?;
        for reference in of_desired {
            known.push(reference.text("name").map_err(RetainError::Desired)?);
            union.push(reference.value().clone());
        }
        for reference in Fields::new(observed)
            .items(names)
            .map_err(RetainError::Observed)?
        {
            let name = reference.text("name").map_err(RetainError::Observed)?;
            if !known.contains(&name) {
                known.push(name);
                union.push(reference.value().clone());
            }
        }
        if !union.is_empty() {
            set(desired, names, union.into())?;
        }
    }
    Ok(())
}

/// The generated labels of a Job's Pods.
fn retain_job(desired: &mut Value, observed: &Value) -> Result<(), RetainError> {
    retain_object(desired, observed, "spec.selector.matchLabels")?;
    retain_object(desired, observed, "spec.template.metadata.labels")
}

/// The token that the controller has issued.
fn retain_secret(desired: &mut Value, observed: &Value) -> Result<(), RetainError> {
    let secret_type = Fields::new(desired).text("type").map_err(RetainError::Desired)?;
    match secret_type {
        Some(SERVICE_ACCOUNT_TOKEN) => retain_object(desired, observed, "data"),
        _ => Ok(()),
    }
}

fn retain_text(desired: &mut Value, observed: &Value, names: &str) -> Result<(), RetainError> {
    let text = Fields::new(observed).text(names).map_err(RetainError::Observed)?;
    match text.filter(|text| !text.is_empty()) {
        Some(text) => set(desired, names, text.into()),
        None => Ok(()),
    }
}

fn retain_object(desired: &mut Value, observed: &Value, names: &str) -> Result<(), RetainError> {
    let fields = Fields::new(observed)
        .object(names)
        .map_err(RetainError::Observed)?;
    match fields {
        Some(fields) => set(desired, names, fields.clone().into()),
        None => Ok(()),
    }
}

fn set(desired: &mut Value, names: &str, value: Value) -> Result<(), RetainError> {
    let (parent, name) = parent(desired, names)?;
    parent.insert(name.to_owned(), value);
    Ok(())
}

fn remove(desired: &mut Value, names: &str) -> Result<(), RetainError> {
    if Fields::new(desired)
        .at(names)
        .map_err(RetainError::Desired)?
        .is_some()
    {
        let (parent, name) = parent(desired, names)?;
        parent.remove(name);
    }
    Ok(())
}

/// Returns the object that contains the last of `names`. Fails if another type is in the way.
fn parent<'a, 'b>(
    desired: &'a mut Value,
    names: &'b str,
) -> Result<(&'a mut Map<String, Value>, &'b str), RetainError> {
    Fields::new(desired).at(names).map_err(RetainError::Desired)?;
    let mut path: Vec<&str> = names.split('.').collect();
    let name = path.pop().unwrap_or_default();
    Ok((json::fields(desired, &path), name))
}
