//! A revision that webhooks call already comes to its end before another one begins, whatever the source says meanwhile.
//!
//! Its pods are those of the newest ReplicaSet of a Deployment that is held. Another pod template would end them at once, since
//! Kubernetes takes pods of an older ReplicaSet first that never were available (`cleanupUnhealthyReplicas` of
//! pkg/controller/deployment/rolling.go).

use std::sync::Arc;

use serde_json::Value;
use tracing::info;
use windlass_api::BundleDeployment;
use windlass_cluster::{apply::FieldOwner, endpoints, kinds};
use windlass_object::{ObjectKey, names, object};

use super::{
    halt::Halt,
    memory::Loaded,
    reconciler::BundleReconciler,
    report::InstallReport,
    rollout_status::RolloutStatus,
    unfinished::{Unfinished, has_revision, unfinished},
};
use crate::install::{
    canary::revision,
    plan::Plan,
    status::{InstallOutcome, Milestone},
};

/// How a revision is given up that webhooks call.
const GIVING_UP: &str = "to abandon this revision, set the source back to the installed bundle while its pods are ready, or set spec.upgrade.allowInterruption: true";

impl BundleReconciler {
    /// Completes the rollout of a revision that webhooks already call, before the rollout of `next` starts.
    /// Does nothing if it is the revision of `next`, or if webhooks may return to the earlier one.
    pub(super) async fn carry_through(
        &self,
        deployment: &BundleDeployment,
        owner: &FieldOwner,
        next: &Plan,
        report: &InstallReport,
    ) -> Result<(), Halt> {
        let Some(begun) = self.begun(deployment, owner, next, report).await? else {
            return Ok(());
        };
        if let Some(status) = &begun.released {
            return released(status);
        }
        let allow_interruption = deployment.spec.upgrade.allow_interruption;
        let Some((number, loaded)) = self.recorded_with(deployment, next, &begun.revision).await? else {
            return lost(&begun.key, allow_interruption);
        };
        info!(
            bundle_deployment = owner.bundle_deployment,
            revision = number,
            "Completing the rollout of the revision that webhooks call"
        );
        // What was left out of it is left out still.
        let loaded = self.possible(loaded).await?.0;
        let mut report = InstallReport::new(deployment);
        let traffic = self.traffic(owner, &loaded.plan)?;
        let swung = self
            .swing(deployment, owner, &loaded.plan, &traffic, &mut report)
            .await;
        carried(number, swung, allow_interruption)
    }

    /// A Deployment whose newest pods webhooks call, that answer, and that the plan would end. The API server is asked: a watch
    /// that lags shows that nobody calls them yet, or that old pods are kept which are let go already.
    async fn begun(
        &self,
        deployment: &BundleDeployment,
        owner: &FieldOwner,
        next: &Plan,
        report: &InstallReport,
    ) -> Result<Option<Unfinished>, Halt> {
        let seen = self.owned(owner, &kinds::DEPLOYMENT);
        if unfinished(seen.iter().map(AsRef::as_ref), None, next)
            .next()
            .is_none()
        {
            return Ok(None);
        }
        let installed = self.installed_record(deployment, report).await?;
        let installed = installed.as_deref().map(|installed| &installed.plan);
        let deployments = self.list_owned(owner, &kinds::DEPLOYMENT).await?;
        let calls = self.list_calls(owner, next).await?;
        let answering = |revision: &str| {
            calls.iter().any(|call| {
                let key = kinds::SERVICE.object(Some(&call.namespace), &call.service);
                let service = self.context.index.find(&key);
                service.is_some_and(|service| self.leads_to_ready(&service, revision))
            })
        };
        let has_pods = |desired: &Value| self.has_pods(owner, next, desired);
        Ok(unfinished(&deployments, installed, next)
            .find(|begun| answering(&begun.revision) && !begun.gives_way_to(next, has_pods)))
    }

    /// Whether a Service of the plan leads to pods of a revision that are ready.
    fn answers(&self, owner: &FieldOwner, plan: &Plan, revision: &str) -> bool {
        let services = self.owned(owner, &kinds::SERVICE);
        services.iter().any(|service| {
            object::text(service, "/metadata/namespace") == Some(&plan.namespace)
                && self.leads_to_ready(service, revision)
        })
    }

    /// Whether a Service selects the pods of a revision, and some of these are ready.
    fn leads_to_ready(&self, service: &Value, revision: &str) -> bool {
        selects(service, revision) && !endpoints::ready(&self.context.index, service, None).is_empty()
    }

    /// Whether webhooks can go to pods of a Deployment of the plan at once: they are there beside others.
    pub(super) fn has_pods(&self, owner: &FieldOwner, plan: &Plan, desired: &Value) -> bool {
        revision(desired).is_some_and(|revision| self.answers(owner, plan, revision))
    }

    /// Whether webhooks call the pods of a Deployment, as it is there.
    pub(super) fn is_revision_called(&self, owner: &FieldOwner, plan: &Plan, live: &Value) -> bool {
        let Some(revision) = revision(live) else {
            return false;
        };
        self.called_services(owner, plan).iter().any(|name| {
            let key = kinds::SERVICE.object(Some(&plan.namespace), name);
            let service = self.context.index.find(&key);
            service.is_some_and(|service| selects(&service, revision))
        })
    }

    /// The latest recorded revision but `next` whose pods are of `revision`.
    async fn recorded_with(
        &self,
        deployment: &BundleDeployment,
        next: &Plan,
        revision: &str,
    ) -> Result<Option<(i64, Arc<Loaded>)>, Halt> {
        let ledger = self.ledger(deployment).await?;
        for record in ledger.records().iter().rev() {
            if let Some(loaded) = self.recorded(deployment, record.number).await?
                && loaded.plan != *next
                && has_revision(&loaded.plan, revision)
            {
                return Ok(Some((record.number, loaded)));
            }
        }
        Ok(None)
    }
}

/// What is to be done where the record of a revision is lost.
fn lost(key: &ObjectKey, allow_interruption: bool) -> Result<(), Halt> {
    if allow_interruption {
        return Ok(());
    }
    let message = format!(
        "webhooks call new pods of {key}, but the record of their revision is lost: set the source to the bundle of that revision again; {GIVING_UP}"
    );
    Err(Halt::failed(Milestone::Installed, "RecordLost", message))
}

/// What is to be done about a Deployment whose old pods are let go.
fn released(status: &RolloutStatus) -> Result<(), Halt> {
    match status {
        RolloutStatus::Running(message) => Err(Halt::waiting(
            Milestone::Installed,
            "RollingOut",
            format!("waiting for the rollout of the revision that webhooks already call: {message}"),
        )),
        RolloutStatus::Complete | RolloutStatus::Stuck(_) => Ok(()),
    }
}

/// What is to be done after revision `number` was carried on. While it is held, its pods end with the template of another one,
/// whatever keeps it from going on.
fn carried(number: i64, swung: Result<(), Halt>, allow_interruption: bool) -> Result<(), Halt> {
    let (outcome, after) = match swung {
        Ok(()) => return Ok(()),
        Err(Halt::Error(error)) => return Err(Halt::Error(error)),
        Err(Halt::Gate(outcome)) => (outcome, None),
        Err(Halt::Later(outcome, after)) => (outcome, Some(after)),
    };
    let prefixed = |message: String| {
        format!(
            "waiting for the rollout of revision {number}, which webhooks already call: {message}; {GIVING_UP}"
        )
    };
    let outcome = match outcome {
        InstallOutcome::Done => return Ok(()),
        InstallOutcome::Failed { .. } if allow_interruption => return Ok(()),
        InstallOutcome::Failed { reason, message, .. } => {
            InstallOutcome::failed(Milestone::Installed, reason, prefixed(message))
        }
        InstallOutcome::Waiting { reason, message, .. } => {
            InstallOutcome::waiting(Milestone::Installed, reason, prefixed(message))
        }
    };
    Err(match after {
        Some(after) => Halt::Later(outcome, after),
        None => Halt::Gate(outcome),
    })
}

fn selects(service: &Value, revision: &str) -> bool {
    let selector = service.pointer("/spec/selector").unwrap_or(&Value::Null);
    selector.get(names::REVISION).and_then(Value::as_str) == Some(revision)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_and_called_is_given_up_only_where_that_is_allowed() {
        let key = kinds::DEPLOYMENT.object(Some("n"), "a");
        let stuck = || Err(Halt::failed(Milestone::Available, "RolloutStuck", "no room"));
        let Err(Halt::Gate(outcome)) = carried(2, stuck(), false) else {
            panic!("it is given up");
        };
        let (reason, message) = outcome.news().unwrap();
        assert_eq!(reason, "RolloutStuck");
        assert!(
            message.contains("no room; to abandon this revision, set the source back"),
            "{message}"
        );
        assert!(carried(2, stuck(), true).is_ok());
        let waits = Err(Halt::waiting(Milestone::Available, "RollingOut", "1 old"));
        assert!(carried(2, waits, true).is_err(), "it may finish");
        assert!(lost(&key, false).is_err() && lost(&key, true).is_ok());
    }

    #[test]
    fn what_is_let_go_is_waited_for_until_kubernetes_gives_up() {
        let of = |status| released(&status).is_ok();
        assert!(!of(RolloutStatus::Running("1 old".to_owned())));
        assert!(of(RolloutStatus::Stuck("1 old".to_owned())));
        assert!(of(RolloutStatus::Complete));
    }
}
