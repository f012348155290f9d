//! The part of the page about a BundleDeployment.

use jiff::Timestamp;
use windlass_api::{BundleDeployment, BundleDeploymentStatus, Conditions};
use windlass_object::age::age;

use crate::problem::{ProblemSeverity, ReportFinding, ReportedProblem, ReportedStep};

/// A row of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BundleRow {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) installed: String,
    pub(crate) next: String,
    pub(crate) state: String,
    pub(crate) is_ready: bool,
    /// How many of its webhooks are armed, for example `2 of 3`.
    pub(crate) armed: String,
    pub(crate) webhooks: Vec<WebhookRow>,
    pub(crate) conditions: Vec<ConditionRow>,
}

/// One webhook, or the conversion of a CRD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WebhookRow {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) state: String,
}

/// A row for a condition of a BundleDeployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConditionRow {
    pub(crate) name: String,
    pub(crate) status: String,
    pub(crate) since: String,
    pub(crate) reason: String,
    pub(crate) message: String,
}

impl BundleRow {
    pub(crate) fn new(deployment: &BundleDeployment, now: Timestamp) -> Self {
        let nothing = BundleDeploymentStatus::default();
        let status = deployment.status.as_ref().unwrap_or(&nothing);
        let installed = status.installed.as_ref().map(ToString::to_string);
        let (armed, all) = status.count_armed();
        let next = status.next.as_ref().map(|next| {
            let name = next.name.as_deref().unwrap_or("an unreadable bundle");
            format!("{name}: {}", next.reason)
        });
        let conversions = status.conversions.iter().map(|conversion| WebhookRow {
            name: conversion.crd.clone(),
            kind: "Conversion".to_owned(),
            state: format!("{:?}", conversion.state),
        });
        let webhooks = status.webhooks.iter().map(|webhook| WebhookRow {
            name: webhook.name.clone(),
            kind: webhook.webhook_type.clone(),
            state: format!("{:?}", webhook.state),
        });
        let is_ready = deployment.is_ready();
        let ready = status.conditions.find("Ready");
        let state = match ready {
            Some(_) if is_ready => "Ready",
            Some(ready) => &ready.reason,
            None => "Unseen",
        };
        Self {
            name: name(deployment),
            namespace: deployment.spec.namespace.clone(),
            installed: installed.unwrap_or_else(|| "nothing yet".to_owned()),
            next: next.unwrap_or_default(),
            state: state.to_owned(),
            is_ready,
            armed: format!("{armed} of {all}"),
            webhooks: conversions.chain(webhooks).collect(),
            conditions: status
                .conditions
                .iter()
                .map(|condition| ConditionRow {
                    name: condition.type_.clone(),
                    status: condition.status.clone(),
                    since: age(condition.last_transition_time.0, now),
                    reason: condition.reason.clone(),
                    message: condition.message.clone(),
                })
                .collect(),
        }
    }
}

fn name(deployment: &BundleDeployment) -> String {
    deployment.metadata.name.clone().unwrap_or_default()
}

/// Returns the problem of a BundleDeployment, or what it is waiting for.
pub(crate) fn finding(deployment: &BundleDeployment, now: Timestamp) -> Option<ReportFinding> {
    let nothing = BundleDeploymentStatus::default();
    let status = deployment.status.as_ref().unwrap_or(&nothing);
    let subject = format!("BundleDeployment {}", name(deployment));
    let under_way = |what: &str, message: String, since: Option<String>| {
        Some(ReportFinding::ReportedStep(ReportedStep {
            subject: subject.clone(),
            what: what.to_owned(),
            message,
            since,
        }))
    };
    let ready = status.conditions.find("Ready");
    let message = ready.map(|ready| ready.message.clone()).unwrap_or_default();
    let since = ready.map(|ready| age(ready.last_transition_time.0, now));
    if deployment.metadata.deletion_timestamp.is_some() {
        return under_way("Removal", message, since);
    }
    if status.observed_generation != deployment.metadata.generation {
        let message = "waiting for the operator to process it".to_owned();
        return under_way("Unseen", message, None);
    }
    if let Some(paused) = status
        .conditions
        .find("Paused")
        .filter(|paused| paused.status == "True")
    {
        return under_way(
            "Paused",
            paused.message.clone(),
            Some(age(paused.last_transition_time.0, now)),
        );
    }
    let ready = ready?;
    if ready.status == "True" {
        return None;
    }
    if status.conditions.holds("Progressing") {
        return under_way(&ready.reason, message, since);
    }
    let works = status.conditions.holds("Available") && status.conditions.holds("Armed");
    let severity = if status.installed.is_some() && !works {
        ProblemSeverity::Failing
    } else {
        ProblemSeverity::Waiting
    };
    Some(ReportFinding::Problem(ReportedProblem {
        severity,
        subject,
        reason: ready.reason.clone(),
        message,
    }))
}
