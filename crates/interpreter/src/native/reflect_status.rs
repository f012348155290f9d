//! The part of a status to collect, for Kubernetes' own kinds.

use serde_json::{Map, Value};
use windlass_object::JsonPath;

use super::counts::{self, count};
use crate::fields::{FieldTypeError, Fields};

/// Returns the status to collect for objects of one kind.
pub(super) type StatusRule = fn(&Fields<'_>) -> Result<Option<Value>, ReflectStatusError>;

/// Why a status cannot be collected.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message explains each field")]
pub enum ReflectStatusError {
    /// A field has the wrong type.
    #[error(transparent)]
    Field(#[from] FieldTypeError),
    /// The annotation for the template's generation is not a number.
    #[error("{path}: {value:?} is not a generation")]
    TemplateGeneration { path: JsonPath, value: String },
}

/// The annotation in which Karmada stores the generation of the resource template. Objects that Karmada did
/// not create lack it.
const TEMPLATE_GENERATION: &str = "resourcetemplate.karmada.io/generation";

/// Returns the rule for a kind. Other kinds are collected whole.
pub(super) fn rule(api_version: &str, kind: &str) -> StatusRule {
    match (api_version, kind) {
        ("apps/v1", "Deployment") => |object| workload(object, counts::DEPLOYMENT),
        ("apps/v1", "ReplicaSet") => |object| workload(object, counts::REPLICA_SET),
        ("apps/v1", "StatefulSet") => |object| workload(object, counts::STATEFUL_SET),
        ("apps/v1", "DaemonSet") => |object| workload(object, counts::DAEMON_SET),
        ("v1", "Service") => service,
        ("batch/v1", "Job") => job,
        ("policy/v1", "PodDisruptionBudget") => budget,
        ("autoscaling/v2", "HorizontalPodAutoscaler") => autoscaler,
        _ => whole_status,
    }
}

/// Collects counters and generations.
fn workload(object: &Fields<'_>, counts: &[&str]) -> Result<Option<Value>, ReflectStatusError> {
    let Some(status) = status(object)? else {
        return Ok(None);
    };
    let mut collected = copy_counts(&status, counts)?;
    collected.extend(copy_counts(&status, &[counts::OBSERVED_GENERATION])?);
    for (name, generation) in [
        (counts::GENERATION, count(object, "metadata.generation")?),
        (counts::TEMPLATE_GENERATION, template_generation(object)?),
    ] {
        if generation != 0 {
            collected.insert(name.to_owned(), generation.into());
        }
    }
    Ok(Some(collected.into()))
}

/// Only load balancers have different addresses in each cluster.
fn service(object: &Fields<'_>) -> Result<Option<Value>, ReflectStatusError> {
    if object.text("spec.type")? != Some("LoadBalancer") {
        return Ok(None);
    }
    let Some(status) = status(object)? else {
        return Ok(None);
    };
    let load_balancer = status.object("loadBalancer")?.cloned().unwrap_or_default();
    let mut collected = Map::new();
    collected.insert("loadBalancer".to_owned(), load_balancer.into());
    Ok(Some(collected.into()))
}

fn job(object: &Fields<'_>) -> Result<Option<Value>, ReflectStatusError> {
    let Some(status) = status(object)? else {
        return Ok(None);
    };
    let mut collected = copy_counts(&status, counts::JOB)?;
    if let Some(conditions) = status.list("conditions")? {
        collected.insert("conditions".to_owned(), conditions.clone().into());
    }
    for name in ["startTime", "completionTime"] {
        if let Some(time) = status.text(name)? {
            collected.insert(name.to_owned(), time.into());
        }
    }
    Ok(Some(collected.into()))
}

fn budget(object: &Fields<'_>) -> Result<Option<Value>, ReflectStatusError> {
    let Some(status) = status(object)? else {
        return Ok(None);
    };
    let mut collected = copy_counts(&status, counts::POD_DISRUPTION_BUDGET)?;
    if let Some(pods) = status.object("disruptedPods")? {
        collected.insert("disruptedPods".to_owned(), pods.clone().into());
    }
    Ok(Some(collected.into()))
}

fn autoscaler(object: &Fields<'_>) -> Result<Option<Value>, ReflectStatusError> {
    let status = status(object)?;
    let collected = status.map(|status| copy_counts(&status, counts::HORIZONTAL_POD_AUTOSCALER));
    Ok(collected.transpose()?.map(Value::Object))
}

fn whole_status(object: &Fields<'_>) -> Result<Option<Value>, ReflectStatusError> {
    Ok(object.object("status")?.cloned().map(Value::Object))
}

/// Returns the status unless it is empty.
fn status<'a>(object: &Fields<'a>) -> Result<Option<Fields<'a>>, FieldTypeError> {
    let is_empty = object.object("status")?.is_none_or(Map::is_empty);
    if is_empty { Ok(None) } else { object.at("status") }
}

fn copy_counts(status: &Fields<'_>, names: &[&str]) -> Result<Map<String, Value>, FieldTypeError> {
    let mut counted = Map::new();
    for name in names {
        if let Some(count) = status.integer(name)? {
            counted.insert((*name).to_owned(), count.into());
        }
    }
    Ok(counted)
}

fn template_generation(object: &Fields<'_>) -> Result<i64, ReflectStatusError> {
    let Some(annotations) = object.at("metadata.annotations")? else {
        return Ok(0);
    };
    let path = annotations.path().field(TEMPLATE_GENERATION);
    match annotations.value().get(TEMPLATE_GENERATION) {
        None | Some(Value::Null) => Ok(0),
        Some(Value::String(value)) => value.parse().map_err(|_| ReflectStatusError::TemplateGeneration {
            path,
            value: value.clone(),
        }),
        Some(_) => {
            let expected = "a string";
            Err(FieldTypeError { path, expected }.into())
        }
    }
}
