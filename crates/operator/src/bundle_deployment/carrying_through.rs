//! A revision that webhooks call already comes to its end before another one begins, whatever the source says meanwhile.
//!
//! Its pods are those of the newest ReplicaSet of a Deployment that is held. Another pod template would end them at once, since
//! Kubernetes takes pods of an older ReplicaSet first that never were available (`cleanupUnhealthyReplicas` of
//! pkg/controller/deployment/rolling.go).

use std::sync::Arc;

use serde_json::Value;
use tracing::{info, warn};
use windlass_api::BundleDeployment;
use windlass_cluster::{apply::Applicant, endpoints, kinds};
use windlass_object::{names, object};

use super::{halt::Halt, memory::Loaded, reconciler::BundleReconciler, report::InstallReport};
use crate::install::{
    canary::revision,
    plan::{Phase, Plan},
    status::{InstallOutcome, Milestone},
    traffic::is_held,
};

// === impl BundleReconciler ===

impl BundleReconciler {
    /// Carries a revision through that webhooks call and whose old pods are still there, if it is not the one of `next` and not
    /// one that webhooks may go back from.
    pub(super) async fn carry_through(
        &self,
        deployment: &BundleDeployment,
        owner: &Applicant,
        next: &Plan,
    ) -> Result<(), Halt> {
        let Some(begun) = self.begun_revision(owner, next).await? else {
            return Ok(());
        };
        let Some((number, loaded)) = self.recorded_with(deployment, next, &begun).await? else {
            warn!(
                bundle_deployment = owner.bundle_deployment,
                "No record of the revision that webhooks call"
            );
            return Ok(());
        };
        info!(
            bundle_deployment = owner.bundle_deployment,
            revision = number,
            "Carrying the revision through that webhooks call"
        );
        let mut report = InstallReport::new(deployment);
        let traffic = self.traffic(owner, &loaded.plan)?;
        let swung = self
            .swing(deployment, owner, &loaded.plan, &traffic, &mut report)
            .await;
        let prefixed = |message: &str| {
            format!(
                "revision {number}, which webhooks call already, comes to its end first: {message}; to give it up, go back to the installed bundle"
            )
        };
        match swung {
            Err(Halt::Gate(InstallOutcome::Waiting { reason, message, .. })) => {
                Err(Halt::waiting(Milestone::Installed, reason, prefixed(&message)))
            }
            Err(Halt::Later(InstallOutcome::Waiting { reason, message, .. }, after)) => {
                let outcome = InstallOutcome::waiting(Milestone::Installed, reason, prefixed(&message));
                Err(Halt::Later(outcome, after))
            }
            Err(Halt::Error(error)) => Err(Halt::Error(error)),
            // Whoever has given up on it is not to wait for it.
            Err(Halt::Gate(_) | Halt::Later(..)) | Ok(()) => Ok(()),
        }
    }

    /// The revision of pods that webhooks call, that answer, and that another pod template would end. The API server is asked: a
    /// watch that lags shows that nobody calls them yet, or that old pods are kept which are let go already.
    async fn begun_revision(&self, owner: &Applicant, next: &Plan) -> Result<Option<String>, Halt> {
        let seen = self.owned(owner, &kinds::DEPLOYMENT);
        if unfinished(seen.iter().map(AsRef::as_ref), next).next().is_none() {
            return Ok(None);
        }
        let deployments = self.list_owned(owner, &kinds::DEPLOYMENT).await?;
        let calls = self.list_calls(owner, next).await?;
        let answering = |revision: &str| {
            calls.iter().any(|call| {
                let key = kinds::SERVICE.object(Some(&call.namespace), &call.service);
                self.context.index.find(&key).is_some_and(|service| {
                    selects(&service, revision)
                        && !endpoints::ready(&self.context.index, &service, None).is_empty()
                })
            })
        };
        let goes_back = next
            .phases
            .of(Phase::Deployments)
            .filter_map(revision)
            .any(|revision| self.answers(owner, next, revision));
        // Where old pods are let go already, webhooks cannot go back to them.
        let begun = unfinished(&deployments, next)
            .find(|(revision, is_held)| answering(revision) && !(*is_held && goes_back));
        Ok(begun.map(|(revision, _)| revision.to_owned()))
    }

    /// Whether a Service of the plan leads to pods of a revision that are ready.
    fn answers(&self, owner: &Applicant, plan: &Plan, revision: &str) -> bool {
        let services = self.owned(owner, &kinds::SERVICE);
        services.iter().any(|service| {
            object::text(service, "/metadata/namespace") == Some(&plan.namespace)
                && selects(service, revision)
                && !endpoints::ready(&self.context.index, service, None).is_empty()
        })
    }

    /// Whether webhooks can go to pods of a Deployment of the plan at once: they are there beside others.
    pub(super) fn has_pods(&self, owner: &Applicant, plan: &Plan, desired: &Value) -> bool {
        revision(desired).is_some_and(|revision| self.answers(owner, plan, revision))
    }

    /// Whether webhooks call the pods of a Deployment, as it is there.
    pub(super) fn is_revision_called(&self, owner: &Applicant, plan: &Plan, live: &Value) -> bool {
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
                && is_of(&loaded.plan, revision)
            {
                return Ok(Some((record.number, loaded)));
            }
        }
        Ok(None)
    }
}

fn is_of(plan: &Plan, revision: &str) -> bool {
    plan.phases
        .of(Phase::Deployments)
        .any(|deployment| self::revision(deployment) == Some(revision))
}

fn selects(service: &Value, revision: &str) -> bool {
    let selector = service.pointer("/spec/selector").unwrap_or(&Value::Null);
    selector.get(names::REVISION).and_then(Value::as_str) == Some(revision)
}

/// The revisions of Deployments that another pod template would cut off, but those of `next`, and whether they are held.
fn unfinished<'a>(
    deployments: impl IntoIterator<Item = &'a Value>,
    next: &Plan,
) -> impl Iterator<Item = (&'a str, bool)> {
    deployments
        .into_iter()
        .filter(|live| is_unfinished(live))
        .filter_map(|live| Some((revision(live)?, is_held(live))))
        .filter(|(revision, _)| !is_of(next, revision))
}

/// Whether a Deployment has pods of an older template beside those of its newest one, or may have.
fn is_unfinished(live: &Value) -> bool {
    let count = |pointer: &str| live.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    is_held(live)
        || count("/status/observedGeneration") < count("/metadata/generation")
        || count("/status/replicas") > count("/status/updatedReplicas")
}
