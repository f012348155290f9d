//! Jobs, and what starts them by a clock.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{AggregateStatusError, Aggregation, Status, put, put_count};
use crate::{
    fields::{FieldTypeError, Fields},
    native::counts,
};

/// When something was, and how that was written.
type Moment<'a> = (Timestamp, &'a str);

/// A Job that has ended never changes: nothing that its clusters say later can start it again.
///
/// It has failed as soon as it has in one cluster, and is complete when it is in all.
pub(super) fn of_job(aggregation: &Aggregation<'_>) -> Result<Option<Status>, AggregateStatusError> {
    let job = &aggregation.object;
    if job.has_condition("Complete")? || job.has_condition("Failed")? {
        return Ok(None);
    }
    let mut status = Status::new();
    for name in counts::JOB {
        put_count(&mut status, name, aggregation.sum(name)?);
    }
    let conditions = conditions(aggregation)?;
    put(
        &mut status,
        "conditions",
        (!conditions.is_empty()).then_some(conditions),
    );
    let started = of_all(aggregation, "startTime")?;
    let known = job.text("status.startTime")?;
    let first = started.iter().flatten().min().map(|(_, text)| *text);
    put(&mut status, "startTime", known.or(first));
    let completed = of_all(aggregation, "completionTime")?;
    let last = completed.iter().flatten().max().map(|(_, text)| *text);
    put(&mut status, "completionTime", last);
    Ok(Some(status))
}

pub(super) fn of_cron_job(aggregation: &Aggregation<'_>) -> Result<Option<Status>, AggregateStatusError> {
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
    put(&mut status, "active", (!active.is_empty()).then_some(active));
    for name in ["lastScheduleTime", "lastSuccessfulTime"] {
        let mut last = None;
        for member in aggregation.collected() {
            last = last.max(member.read(|status| moment(status, name))?);
        }
        put(&mut status, name, last.map(|(_, text)| text));
    }
    Ok(Some(status))
}

/// How the Job has ended. What announces an end is said before it: the API server takes no end that was not announced.
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

/// Where a condition is `True`.
fn clusters_with<'a>(
    aggregation: &Aggregation<'a>,
    condition_type: &str,
) -> Result<Vec<&'a str>, AggregateStatusError> {
    let mut clusters = Vec::new();
    for member in aggregation.collected() {
        if member.read(|status| status.is_true_among("conditions", condition_type))? {
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

/// When something was in each cluster; `None` as long as it was not in all.
fn of_all<'a>(
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
