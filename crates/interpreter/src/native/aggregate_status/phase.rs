//! Phases: that of the cluster where things are worst.

use serde_json::{Value, json};

use super::{AggregateStatusError, Aggregation, Status, put};
use crate::fields::{FieldTypeError, Fields};

/// Phases of Pods, the one that counts most first.
const OF_PODS: [&str; 4] = ["Failed", "Pending", "Running", "Succeeded"];

/// Phases of PersistentVolumes, the one that counts most first.
const OF_VOLUMES: [&str; 5] = ["Failed", "Pending", "Available", "Bound", "Released"];

/// What the containers are doing is of all clusters; which they are is the same in each.
pub(super) fn of_pod(aggregation: &Aggregation<'_>) -> Result<Option<Status>, AggregateStatusError> {
    if !aggregation.is_collected {
        return Ok(None);
    }
    let mut status = Status::new();
    put(&mut status, "phase", worst(&phases(aggregation)?, &OF_PODS));
    for name in ["containerStatuses", "initContainerStatuses"] {
        let mut containers = Vec::new();
        for member in aggregation.collected() {
            containers.extend(member.read(|status| container_states(status, name))?);
        }
        put(&mut status, name, (!containers.is_empty()).then_some(containers));
    }
    Ok(Some(status))
}

pub(super) fn of_volume(aggregation: &Aggregation<'_>) -> Result<Option<Status>, AggregateStatusError> {
    let mut status = Status::new();
    put(&mut status, "phase", worst(&phases(aggregation)?, &OF_VOLUMES));
    Ok(Some(status))
}

/// Lost in one cluster is lost; else it is in a phase of a cluster where it is not bound, if there is one.
pub(super) fn of_claim(aggregation: &Aggregation<'_>) -> Result<Option<Status>, AggregateStatusError> {
    let mut worst = "Bound";
    for member in aggregation.collected() {
        let phase = member.read(|status| status.text("phase"))?.unwrap_or("Pending");
        if worst != "Lost" && phase != "Bound" {
            worst = phase;
        }
    }
    let mut status = Status::new();
    put(&mut status, "phase", Some(worst));
    Ok(Some(status))
}

/// The phase in each cluster. Where nobody has looked yet, it is on its way.
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

/// Whether containers are ready, and their state, with all else that the API server fills in where it is absent.
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
