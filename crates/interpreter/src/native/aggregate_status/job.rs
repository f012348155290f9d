//! Aggregates the status of Jobs and CronJobs.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{AggregateStatusError, Aggregation, Status, set_count, set_or_remove};
use crate::{
    fields::{FieldTypeError, Fields},
    native::counts,
};

/// A point in time, and its original text.
type Moment<'a> = (Timestamp, &'a str);

/// A finished Job never changes: a later status of a cluster cannot start it again.
///
/// It has failed if it failed in one cluster, and is complete if it is complete in all.
pub(super) fn job_status(aggregation: &Aggregation<'_>) -> Result<Option<Status>, AggregateStatusError> {
    let job = &aggregation.object;
    if job.has_condition("Complete")? || job.has_condition("Failed")? {
        return Ok(None);
    }
    let mut status = Status::new();
    for name in counts::JOB {
        set_count(&mut status, name, aggregation.sum(name)?);
    }
    let conditions = conditions(aggregation)?;
    set_or_remove(
        &mut status,
        "conditions",
        (!conditions.is_empty()).then_some(conditions),
    );
    let started = all_moments(aggregation, "startTime")?;
    let known = job.text("status.startTime")?;
    let first = started.iter().flatten().min().map(|(_, text)| *text);
    set_or_remove(&mut status, "startTime", known.or(first));
    let completed = all_moments(aggregation, "completionTime")?;
    let last = completed.iter().flatten().max().map(|(_, text)| *text);
    set_or_remove(&mut status, "completionTime", last);
    Ok(Some(status))
}

pub(super) fn cron_job_status(aggregation: &Aggregation<'_>) -> Result<Option<Status>, AggregateStatusError> {
    let mut status = aggregation.status()?;
    let mut active: Vec<Value> = Vec::new();
    for member in aggregation.collected() {
        active.extend(
            member
                .read(|status| status.list("active"))?
                .into_iter()
                .flatten()
                .cloned(),
        );
    }
    set_or_remove(&mut status, "active", (!active.is_empty()).then_some(active));
    for name in ["lastScheduleTime", "lastSuccessfulTime"] {
        let mut last = None;
        for member in aggregation.collected() {
            last = last.max(member.read(|status| moment(status, name))?);
        }
        set_or_remove(&mut status, name, last.map(|(_, text)| text));
    }
    Ok(Some(status))
}

/// The conditions of a finished Job. The announcing condition comes first, because the API server rejects a
/// final condition without it.
fn conditions(aggregation: &Aggregation<'_>) -> Result<Vec<Value>, AggregateStatusError> {
    let failed = clusters_with(aggregation, "Failed")?;
    if !failed.is_empty() {
        let message = format!("Job failed in clusters {}", failed.join(", "));
        let is_announced = !clusters_with(aggregation, "FailureTarget")?.is_empty();
        let announced = is_announced.then_some("FailureTarget");
        let types = announced.into_iter().chain(["Failed"]);
        return Ok(types
            .map(|of_type| condition(aggregation, of_type, "JobFailed", &message))
            .collect());
    }
    let all = aggregation.clusters.len();
    let mut conditions = Vec::new();
    if all > 0 && clusters_with(aggregation, "Complete")?.len() == all {
        if clusters_with(aggregation, "SuccessCriteriaMet")?.len() == all {
            let message = "Job met its success criteria in all clusters";
            conditions.push(condition(
                aggregation,
                "SuccessCriteriaMet",
                "CompletionsReached",
                message,
            ));
        }
        conditions.push(condition(
            aggregation,
            "Complete",
            "Completed",
            "Job completed in all clusters",
        ));
    }
    Ok(conditions)
}

/// Returns the clusters in which a condition is `True`.
fn clusters_with<'a>(
    aggregation: &Aggregation<'a>,
    condition_type: &str,
) -> Result<Vec<&'a str>, AggregateStatusError> {
    let mut clusters = Vec::new();
    for member in aggregation.collected() {
        if member.read(|status| status.has_true_condition_in("conditions", condition_type))? {
            clusters.push(member.cluster);
        }
    }
    Ok(clusters)
}

fn condition(aggregation: &Aggregation<'_>, condition_type: &str, reason: &str, message: &str) -> Value {
    let now = aggregation.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    json!({
        "type": condition_type,
        "status": "True",
        "lastProbeTime": now,
        "lastTransitionTime": now,
        "reason": reason,
        "message": message,
    })
}

/// Returns a point in time of each cluster; `None` until all clusters have it.
fn all_moments<'a>(
    aggregation: &Aggregation<'a>,
    name: &str,
) -> Result<Option<Vec<Moment<'a>>>, AggregateStatusError> {
    let mut moments = Vec::new();
    for member in aggregation.collected() {
        moments.extend(member.read(|status| moment(status, name))?);
    }
    Ok((moments.len() == aggregation.clusters.len()).then_some(moments))
}

fn moment<'a>(status: &Fields<'a>, name: &str) -> Result<Option<Moment<'a>>, FieldTypeError> {
    let text = status.text(name)?.unwrap_or_default();
    Ok(status.timestamp(name)?.map(|moment| (moment, text)))
}
