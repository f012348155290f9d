//! Aggregates phases to that of the cluster in the worst state.

use serde_json::{Value, json};

use super::{AggregateStatusError, Aggregation, Status, set_or_remove};
use crate::fields::{FieldTypeError, Fields};

/// Phases of Pods, the worst first.
const OF_PODS: [&str; 4] = ["Failed", "Pending", "Running", "Succeeded"];

/// Phases of PersistentVolumes, the worst first.
const OF_VOLUMES: [&str; 5] = ["Failed", "Pending", "Available", "Bound", "Released"];

/// The container states of all clusters are listed; the containers are the same in each.
pub(super) fn pod_status(aggregation: &Aggregation<'_>) -> Result<Option<Status>, AggregateStatusError> {
    if !aggregation.is_collected {
        return Ok(None);
    }
    let mut status = Status::new();
    set_or_remove(&mut status, "phase", worst(&phases(aggregation)?, &OF_PODS));
    for name in ["containerStatuses", "initContainerStatuses"] {
        let mut containers = Vec::new();
        for member in aggregation.collected() {
            containers.extend(member.read(|status| container_states(status, name))?);
        }
        set_or_remove(&mut status, name, (!containers.is_empty()).then_some(containers));
    }
    Ok(Some(status))
}

pub(super) fn volume_status(aggregation: &Aggregation<'_>) -> Result<Option<Status>, AggregateStatusError> {
    let mut status = Status::new();
    set_or_remove(&mut status, "phase", worst(&phases(aggregation)?, &OF_VOLUMES));
    Ok(Some(status))
}

/// Lost if it is lost in one cluster; else the phase of a cluster where it is not bound, if there is one.
pub(super) fn claim_status(aggregation: &Aggregation<'_>) -> Result<Option<Status>, AggregateStatusError> {
    let mut worst = "Bound";
    for member in aggregation.collected() {
        let phase = member.read(|status| status.text("phase"))?.unwrap_or("Pending");
        if worst != "Lost" && phase != "Bound" {
            worst = phase;
        }
    }
    let mut status = Status::new();
    set_or_remove(&mut status, "phase", Some(worst));
    Ok(Some(status))
}

/// The phase in each cluster; Pending if no status was collected.
fn phases<'a>(aggregation: &Aggregation<'a>) -> Result<Vec<&'a str>, AggregateStatusError> {
    let mut phases = Vec::new();
    for cluster in &aggregation.clusters {
        phases.extend(match cluster.status() {
            None => Some("Pending"),
            Some(member) => member.read(|status| status.text("phase"))?,
        });
    }
    Ok(phases)
}

fn worst(phases: &[&str], order: &[&'static str]) -> Option<&'static str> {
    order.iter().find(|phase| phases.contains(phase)).copied()
}

/// Readiness and state of containers; other fields get the API server's defaults.
fn container_states(status: &Fields<'_>, name: &str) -> Result<Vec<Value>, FieldTypeError> {
    let containers = status.items(name)?.into_iter().map(|container| {
        Ok(json!({
            "name": "",
            "image": "",
            "imageID": "",
            "restartCount": 0,
            "ready": container.boolean("ready")?.unwrap_or_default(),
            "state": container.object("state")?.cloned().unwrap_or_default(),
            "lastState": {},
        }))
    });
    containers.collect()
}
