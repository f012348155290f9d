//! Names of counters and generations in statuses of workloads.

use crate::fields::{FieldTypeError, Fields};

pub(super) const DEPLOYMENT: &[&str] = &[
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
];

pub(super) const REPLICA_SET: &[&str] = &["replicas", "readyReplicas", "availableReplicas"];

pub(super) const STATEFUL_SET: &[&str] = &[
    "availableReplicas",
    "currentReplicas",
    "readyReplicas",
    "replicas",
    "updatedReplicas",
];

pub(super) const DAEMON_SET: &[&str] = &[
    "currentNumberScheduled",
    "desiredNumberScheduled",
    "numberAvailable",
    "numberMisscheduled",
    "numberReady",
    "updatedNumberScheduled",
    "numberUnavailable",
];

pub(super) const POD_DISRUPTION_BUDGET: &[&str] = &[
    "disruptionsAllowed",
    "expectedPods",
    "desiredHealthy",
    "currentHealthy",
];

pub(super) const HORIZONTAL_POD_AUTOSCALER: &[&str] = &["currentReplicas", "desiredReplicas"];

pub(super) const JOB: &[&str] = &["active", "succeeded", "failed"];

pub(super) const OBSERVED_GENERATION: &str = "observedGeneration";

/// In a collected status: the generation of the object in its cluster.
pub(super) const GENERATION: &str = "generation";

/// In a collected status: the generation of the resource template that the object was created from.
pub(super) const TEMPLATE_GENERATION: &str = "resourceTemplateGeneration";

/// Returns a number; 0 if it is absent.
pub(super) fn count(fields: &Fields<'_>, names: &str) -> Result<i64, FieldTypeError> {
    Ok(fields.integer(names)?.unwrap_or_default())
}
