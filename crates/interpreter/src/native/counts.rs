//! What statuses of workloads count, and where they say about which generation they are.

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

/// The generation that the status is about.
pub(super) const OBSERVED_GENERATION: &str = "observedGeneration";

/// In a status that is collected: the generation of the object in its cluster.
pub(super) const GENERATION: &str = "generation";

/// In a status that is collected: the generation of what the object was made of.
pub(super) const TEMPLATE_GENERATION: &str = "resourceTemplateGeneration";

/// A number that is 0 where it is absent.
pub(super) fn count(fields: &Fields<'_>, names: &str) -> Result<i64, FieldTypeError> {
    Ok(fields.integer(names)?.unwrap_or_default())
}
