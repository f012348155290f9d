//! A revision that webhooks call already comes to its end before another one begins, whatever the source says meanwhile.
//!
//! Its pods are those of the newest ReplicaSet of a Deployment that is held. Another pod template would end them at once, since
//! Kubernetes takes pods of an older ReplicaSet first that never were available (`cleanupUnhealthyReplicas` of
//! pkg/controller/deployment/rolling.go).

use std::sync::Arc;

use serde_json::Value;
use tracing::info;
use windlass_api::BundleDeployment;
use windlass_cluster::{apply::Applicant, endpoints, kinds};
use windlass_object::{ObjectKey, names, object};

use super::{
    halt::Halt, memory::Loaded, reconciler::BundleReconciler, report::InstallReport,
    rollout_status::RolloutStatus,
};
use crate::install::{
    canary::revision,
    plan::{Phase, Plan},
    status::{InstallOutcome, Milestone},
    traffic::is_held,
};

/// How a revision is given up that webhooks call.
const GIVING_UP: &str = "to give it up, go back to the installed bundle while its pods are ready, or set \
                         spec.upgrade.allowInterruption: true";

/// A Deployment that another pod template would cut off.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Unfinished {
    key: ObjectKey,
    revision: String,
    /// How far it is, where it is not held any more.
    released: Option<RolloutStatus>,
}

// === impl BundleReconciler ===

impl BundleReconciler {
    /// Carries a revision through that webhooks call and whose old pods are still there, if it is not the one of `next` and not
    /// one that webhooks may go back from.
    pub(super) async fn carry_through(
        &self,
        deployment: &BundleDeployment,
        owner: &Applicant,
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
            return begun.lost(allow_interruption);
        };
        info!(
            bundle_deployment = owner.bundle_deployment,
            revision = number,
            "Carrying the revision through that webhooks call"
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
        owner: &Applicant,
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
                self.context.index.find(&key).is_some_and(|service| {
                    selects(&service, revision)
                        && !endpoints::ready(&self.context.index, &service, None).is_empty()
                })
            })
        };
        let has_pods = |desired: &Value| self.has_pods(owner, next, desired);
        Ok(unfinished(&deployments, installed, next)
            .find(|begun| answering(&begun.revision) && !begun.gives_way_to(next, has_pods)))
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

// === impl Unfinished ===

impl Unfinished {
    fn of(live: &Value) -> Option<Self> {
        Some(Self {
            key: ObjectKey::of(live)?,
            revision: revision(live)?.to_owned(),
            released: (!is_held(live)).then(|| RolloutStatus::of(live)),
        })
    }

    /// Whether webhooks can go from its pods to those of `next` at once. Where old pods are let go already, they cannot.
    fn gives_way_to(&self, next: &Plan, has_pods: impl Fn(&Value) -> bool) -> bool {
        let mut deployments = next.phases.of(Phase::Deployments);
        let same = deployments.find(|desired| ObjectKey::of(desired).as_ref() == Some(&self.key));
        self.released.is_none()
            && match same {
                Some(desired) => has_pods(desired),
                None => next.phases.of(Phase::Deployments).any(has_pods),
            }
    }

    /// What is to be done where its record is lost.
    fn lost(&self, allow_interruption: bool) -> Result<(), Halt> {
        if allow_interruption {
            return Ok(());
        }
        let message = format!(
            "webhooks call new pods of {}, and the record of their revision is lost: set the source to its bundle again; {GIVING_UP}",
            self.key
        );
        Err(Halt::failed(Milestone::Installed, "RecordLost", message))
    }
}

/// What is to be done about a Deployment whose old pods are let go.
fn released(status: &RolloutStatus) -> Result<(), Halt> {
    match status {
        RolloutStatus::Running(message) => Err(Halt::waiting(
            Milestone::Installed,
            "RollingOut",
            format!("the revision that webhooks call comes to its end first: {message}"),
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
            "revision {number}, which webhooks call already, comes to its end first: {message}; {GIVING_UP}"
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

fn is_of(plan: &Plan, revision: &str) -> bool {
    plan.phases
        .of(Phase::Deployments)
        .any(|deployment| self::revision(deployment) == Some(revision))
}

fn selects(service: &Value, revision: &str) -> bool {
    let selector = service.pointer("/spec/selector").unwrap_or(&Value::Null);
    selector.get(names::REVISION).and_then(Value::as_str) == Some(revision)
}

/// What another pod template would cut off, but what is of `next`.
fn unfinished<'a>(
    deployments: impl IntoIterator<Item = &'a Value>,
    installed: Option<&Plan>,
    next: &Plan,
) -> impl Iterator<Item = Unfinished> {
    deployments
        .into_iter()
        .filter(move |live| is_unfinished(live, installed))
        .filter_map(Unfinished::of)
        .filter(|begun| !is_of(next, &begun.revision))
}

/// Whether a Deployment has pods of an older template beside those of its newest one, or may have. One that is as it was
/// installed keeps those that are ready, whatever takes its place: somebody has scaled or restarted it.
fn is_unfinished(live: &Value, installed: Option<&Plan>) -> bool {
    if is_held(live) {
        return true;
    }
    let count = |pointer: &str| live.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    let is_installed =
        installed.is_some_and(|plan| revision(live).is_some_and(|revision| is_of(plan, revision)));
    let may_have_others = count("/status/observedGeneration") < count("/metadata/generation")
        || count("/status/replicas") > count("/status/updatedReplicas");
    !is_installed && may_have_others && matches!(RolloutStatus::of(live), RolloutStatus::Running(_))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_bundle::render::ServingDefaults;

    use super::*;
    use crate::install::{canary::stamp, plan::Phases, traffic::held};

    fn deployment(name: &str, image: &str) -> Value {
        let mut deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "n"},
            "spec": {"template": {"spec": {"containers": [{"image": image}]}}},
        });
        stamp(&mut deployment);
        deployment
    }

    fn plan(deployments: impl IntoIterator<Item = Value>) -> Plan {
        Plan {
            namespace: "n".into(),
            phases: Phases::new(deployments),
            conversions: vec![],
            self_managed: None,
            certificates: vec![],
            serving: ServingDefaults::default(),
            examples: vec![],
            notices: vec![],
        }
    }

    #[test]
    fn webhooks_go_from_a_deployment_only_to_pods_of_the_same_one() {
        let begun = Unfinished::of(&held(&deployment("a", "2"))).unwrap();
        let released = Unfinished::of(&deployment("a", "2")).unwrap();
        let (a, b) = (deployment("a", "3"), deployment("b", "1"));
        for (next, ready, expected) in [
            (vec![a.clone()], vec!["a"], true),
            (vec![a.clone()], vec![], false),
            // The pods of the other one do not answer for it.
            (vec![a.clone(), b.clone()], vec!["b"], false),
            (vec![a, b.clone()], vec!["a"], true),
            // It is dropped, and its template stays as it is until nobody calls it.
            (vec![b.clone()], vec!["b"], true),
            (vec![b], vec![], false),
        ] {
            let next = plan(next);
            let has_pods = |desired: &Value| ready.iter().any(|name| desired["metadata"]["name"] == *name);
            assert_eq!(
                begun.gives_way_to(&next, has_pods),
                expected,
                "{next:?} {ready:?}"
            );
            assert!(!released.gives_way_to(&next, has_pods));
        }
    }

    #[test]
    fn what_is_held_and_called_is_given_up_only_where_that_is_allowed() {
        let begun = Unfinished::of(&held(&deployment("a", "2"))).unwrap();
        let stuck = || Err(Halt::failed(Milestone::Available, "RolloutStuck", "no room"));
        let Err(Halt::Gate(outcome)) = carried(2, stuck(), false) else {
            panic!("it is given up");
        };
        let (reason, message) = outcome.news().unwrap();
        assert_eq!(reason, "RolloutStuck");
        assert!(message.contains("no room; to give it up, go back"), "{message}");
        assert!(carried(2, stuck(), true).is_ok());
        let waits = Err(Halt::waiting(Milestone::Available, "RollingOut", "1 old"));
        assert!(carried(2, waits, true).is_err(), "it may come to its end");
        assert!(begun.lost(false).is_err() && begun.lost(true).is_ok());
    }

    #[test]
    fn what_is_let_go_is_waited_for_until_kubernetes_gives_up() {
        let of = |status| released(&status).is_ok();
        assert!(!of(RolloutStatus::Running("1 old".to_owned())));
        assert!(of(RolloutStatus::Stuck("1 old".to_owned())));
        assert!(of(RolloutStatus::Complete));
    }

    #[test]
    fn what_is_installed_and_scaled_is_not_unfinished() {
        let status = |mut live: Value, observed: i64, replicas: i64, updated: i64| {
            live["metadata"]["generation"] = 2.into();
            live["status"] =
                json!({"observedGeneration": observed, "replicas": replicas, "updatedReplicas": updated});
            live
        };
        let (old, new) = (deployment("a", "1"), deployment("a", "2"));
        let installed = plan([old.clone()]);
        for (live, expected) in [
            (status(old.clone(), 1, 2, 2), false),
            // Somebody has restarted it.
            (status(old, 2, 4, 2), false),
            (status(new.clone(), 1, 2, 2), true),
            (status(new.clone(), 2, 4, 2), true),
            (status(new.clone(), 2, 2, 2), false),
            (held(&status(new, 2, 2, 2)), true),
        ] {
            assert_eq!(is_unfinished(&live, Some(&installed)), expected, "{live}");
        }
    }
}
