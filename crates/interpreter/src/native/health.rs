//! Health of Kubernetes' own kinds.

use super::counts::count;
use crate::fields::{FieldTypeError, Fields};

/// Reports whether an object of one kind is healthy.
pub(super) type HealthRule = fn(&Fields<'_>) -> Result<bool, FieldTypeError>;

pub(super) fn rule(api_version: &str, kind: &str) -> Option<HealthRule> {
    Some(match (api_version, kind) {
        ("apps/v1", "Deployment" | "StatefulSet") => is_rolled_out,
        ("apps/v1", "ReplicaSet") => has_replicas,
        ("apps/v1", "DaemonSet") => is_on_each_node,
        ("v1", "Service") => is_reachable,
        ("networking.k8s.io/v1", "Ingress") => has_address,
        ("v1", "PersistentVolumeClaim") => |claim| is_in_phase(claim, "Bound"),
        ("v1", "Namespace") => |namespace| is_in_phase(namespace, "Active"),
        ("v1", "Pod") => is_ready,
        ("policy/v1", "PodDisruptionBudget") => has_healthy_pods,
        ("batch/v1", "Job") => has_not_failed,
        ("batch/v1", "CronJob") => has_succeeded_last,
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition") => {
            |definition| definition.has_condition("Established")
        }
        ("apiregistration.k8s.io/v1", "APIService") => |service| service.has_condition("Available"),
        _ => return None,
    })
}

/// Reports whether a condition is `True` and current: its observedGeneration, or that of the status if the
/// condition has none, must not differ from the object's generation.
pub(super) fn is_healthy_by_condition(
    object: &Fields<'_>,
    condition_type: &str,
) -> Result<bool, FieldTypeError> {
    let Some(condition) = object.condition(condition_type)? else {
        return Ok(false);
    };
    let observed = match condition.integer("observedGeneration")? {
        None => object.integer("status.observedGeneration")?,
        observed => observed,
    };
    let generation = object.integer("metadata.generation")?;
    let is_current = observed.is_none() || generation.is_none() || observed == generation;
    Ok(is_current && condition.text("status")? == Some("True"))
}

fn is_rolled_out(workload: &Fields<'_>) -> Result<bool, FieldTypeError> {
    let updated = count(workload, "status.updatedReplicas")?;
    let available = count(workload, "status.availableReplicas")?;
    let desired = workload.integer("spec.replicas")?;
    Ok(is_observed(workload)? && desired.is_none_or(|desired| updated >= desired) && available >= updated)
}

fn has_replicas(replica_set: &Fields<'_>) -> Result<bool, FieldTypeError> {
    let available = count(replica_set, "status.availableReplicas")?;
    let desired = replica_set.integer("spec.replicas")?;
    Ok(is_observed(replica_set)? && desired.is_none_or(|desired| available >= desired))
}

fn is_on_each_node(daemon_set: &Fields<'_>) -> Result<bool, FieldTypeError> {
    let updated = count(daemon_set, "status.updatedNumberScheduled")?;
    let desired = count(daemon_set, "status.desiredNumberScheduled")?;
    let available = count(daemon_set, "status.numberAvailable")?;
    Ok(is_observed(daemon_set)? && updated >= desired && available >= updated)
}

/// Only load balancers take time to become reachable.
fn is_reachable(service: &Fields<'_>) -> Result<bool, FieldTypeError> {
    Ok(service.text("spec.type")? != Some("LoadBalancer") || has_address(service)?)
}

fn has_address(object: &Fields<'_>) -> Result<bool, FieldTypeError> {
    for ingress in object.items("status.loadBalancer.ingress")? {
        for address in [ingress.text("hostname")?, ingress.text("ip")?] {
            if address.is_some_and(|address| !address.is_empty()) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

fn is_in_phase(object: &Fields<'_>, phase: &str) -> Result<bool, FieldTypeError> {
    Ok(object.text("status.phase")? == Some(phase))
}

fn is_ready(pod: &Fields<'_>) -> Result<bool, FieldTypeError> {
    match pod.text("status.phase")? {
        Some("Succeeded") => Ok(true),
        Some("Running") => pod.has_condition("Ready"),
        _ => Ok(false),
    }
}

fn has_healthy_pods(budget: &Fields<'_>) -> Result<bool, FieldTypeError> {
    Ok(count(budget, "status.currentHealthy")? >= count(budget, "status.desiredHealthy")?)
}

/// A running Job is healthy, and so is a suspended one.
fn has_not_failed(job: &Fields<'_>) -> Result<bool, FieldTypeError> {
    if job.has_condition("Failed")? || job.has_condition("FailureTarget")? {
        return Ok(false);
    }
    let is_started = job.at("status.startTime")?.is_some();
    Ok(is_started || job.has_condition("Complete")? || is_suspended(job)?)
}

/// A CronJob is unhealthy if its last Job has finished without success.
fn has_succeeded_last(cron_job: &Fields<'_>) -> Result<bool, FieldTypeError> {
    let Some(scheduled) = cron_job.timestamp("status.lastScheduleTime")? else {
        return Ok(true);
    };
    let successful = cron_job.timestamp("status.lastSuccessfulTime")?;
    let is_active = !cron_job.items("status.active")?.is_empty();
    let is_successful = successful.is_some_and(|successful| successful >= scheduled);
    Ok(is_active || is_successful || is_suspended(cron_job)?)
}

fn is_suspended(object: &Fields<'_>) -> Result<bool, FieldTypeError> {
    Ok(object.boolean("spec.suspend")? == Some(true))
}

/// Reports whether the status is for the current generation.
fn is_observed(object: &Fields<'_>) -> Result<bool, FieldTypeError> {
    Ok(count(object, "status.observedGeneration")? == count(object, "metadata.generation")?)
}
