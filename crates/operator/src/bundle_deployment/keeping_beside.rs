//! The installed revision beside the next one: while that is tried out, rolls out or is stuck, what its pods live on, and what
//! sends calls to them, is put back.

use serde_json::Value;
use tracing::warn;
use windlass_api::BundleDeployment;
use windlass_cluster::{
    RequestError,
    apply::{ApplyError, FieldOwner},
    lease::NotLeading,
    telemetry::chain,
};
use windlass_object::{ObjectKey, object};

use super::{
    halt::{BundleDeploymentError, Halt, LAG},
    memory::Loaded,
    objects::{Armament, refused},
    reconciler::BundleReconciler,
    report::InstallReport,
};
use crate::install::{
    plan::{Phase, Plan},
    status::{InstallOutcome, Milestone},
    traffic::Traffic,
};

impl BundleReconciler {
    /// Restores objects of the installed revision that are missing or that other clients changed, until
    /// webhooks call pods of `next`. Objects that `next` has changed stay. Errors do not stop `next`, which
    /// may correct their cause.
    pub(super) async fn keep_beside(
        &self,
        deployment: &BundleDeployment,
        owner: &FieldOwner,
        next: &Loaded,
        report: &InstallReport,
    ) -> Result<(), Halt> {
        if report.next.is_none() {
            return Ok(());
        }
        self.put_back_beside(deployment, owner, &next.plan, report).await
    }

    /// The same beside what has begun after the installed revision, whatever is wanted and refused by now.
    pub(super) async fn keep_beside_begun(
        &self,
        deployment: &BundleDeployment,
        owner: &FieldOwner,
        report: &InstallReport,
    ) -> Result<(), Halt> {
        let Some(installed) = report.installed.as_ref().map(|installed| installed.revision) else {
            return Ok(());
        };
        let ledger = self.ledger(deployment).await?;
        let begun = ledger
            .newest()
            .map_or(installed, |newest| newest.number.max(installed));
        match self.recorded(deployment, begun).await? {
            Some(begun) => self.put_back_beside(deployment, owner, &begun.plan, report).await,
            None => Ok(()),
        }
    }

    async fn put_back_beside(
        &self,
        deployment: &BundleDeployment,
        owner: &FieldOwner,
        next: &Plan,
        report: &InstallReport,
    ) -> Result<(), Halt> {
        let Some(installed) = self.installed_plan(deployment, report).await? else {
            return Ok(());
        };
        let allow_interruption = deployment.spec.upgrade.allow_interruption;
        let put_back = self
            .put_back(owner, &installed.plan, next, allow_interruption)
            .await;
        let halt = match put_back {
            Ok(()) => return Ok(()),
            // It waits for what it has put back itself.
            Err(halt @ Halt::Later(..)) => return Err(halt),
            Err(Halt::Error(error)) if NotLeading::is_cause_of(&error) => return Err(Halt::Error(error)),
            Err(Halt::Error(error)) => self.unblock(owner, error).await,
            Err(halt) => halt,
        };
        let problem = match halt {
            Halt::Error(error) => chain(&error),
            Halt::Gate(outcome) | Halt::Later(outcome, _) => {
                let news = outcome.news().map(|(_, message)| message.to_owned());
                news.unwrap_or_default()
            }
        };
        let name = &owner.bundle_deployment;
        warn!(
            bundle_deployment = name,
            problem, "Cannot maintain all of the installed revision"
        );
        Ok(())
    }

    /// Puts back each object that can be.
    ///
    /// # Errors
    ///
    /// Why the first one could not be.
    async fn put_back(
        &self,
        owner: &FieldOwner,
        installed: &Plan,
        next: &Plan,
        allow_interruption: bool,
    ) -> Result<(), Halt> {
        let standing = self.standing_traffic(owner, installed);
        if self.is_called_besides(owner, &standing, next) {
            return Ok(());
        }
        let mut failure = None;
        for phase in Phase::ALL {
            for desired in installed.phases.of(phase) {
                let is_kept_elsewhere =
                    installed.is_called(desired) || matches!(phase, Phase::Crds | Phase::Callers);
                if !is_kept_elsewhere {
                    let done = self
                        .put_back_unless_replaced(owner, desired, next, allow_interruption)
                        .await;
                    keep_first(&mut failure, done)?;
                }
            }
        }
        for service in &standing.services {
            let done = self.put_back_object(owner, service).await;
            keep_first(&mut failure, done)?;
        }
        let done = self.put_back_webhooks(owner, installed, &standing).await;
        keep_first(&mut failure, done)?;
        failure.map_or(Ok(()), Err)
    }

    async fn put_back_unless_replaced(
        &self,
        owner: &FieldOwner,
        desired: &Value,
        next: &Plan,
        allow_interruption: bool,
    ) -> Result<(), Halt> {
        if self.gives_way(owner, desired, next, allow_interruption).await? {
            return Ok(());
        }
        if self.has_lost_pods(owner, desired, next).await? {
            self.ensure(desired, owner).await?;
            let name = object::text(desired, "/metadata/name").unwrap_or_default();
            let message = format!(
                "waiting for pods of Deployment {name} of the installed revision, which webhooks call"
            );
            let outcome = InstallOutcome::waiting(Milestone::Available, "RollingOut", message);
            return Err(Halt::Later(outcome, LAG));
        }
        self.put_back_object(owner, desired).await
    }

    /// Whether webhooks call pods of another revision than `standing` leads to.
    fn is_called_besides(&self, owner: &FieldOwner, standing: &Traffic, next: &Plan) -> bool {
        let is_of_next = |service: &str| {
            let names = next.certificates.iter();
            names
                .into_iter()
                .any(|names| names.service == service || names.green == service)
        };
        self.called_services(owner, next).iter().any(|called| {
            let stands = standing
                .services
                .iter()
                .any(|service| object::text(service, "/metadata/name") == Some(called));
            is_of_next(called) && !stands
        })
    }

    /// Applies an object of the installed revision that is not there, or that is still as that applied it.
    async fn put_back_object(&self, owner: &FieldOwner, desired: &Value) -> Result<(), Halt> {
        let Some(key) = ObjectKey::from_object(desired) else {
            return Ok(());
        };
        let live = self.live(&key).await?;
        let is_its_own = live
            .as_deref()
            .is_none_or(|live| self.context.applier.was_applied(desired, live, owner));
        if is_its_own {
            self.ensure(desired, owner).await?;
        }
        Ok(())
    }

    async fn put_back_webhooks(
        &self,
        owner: &FieldOwner,
        installed: &Plan,
        standing: &Traffic,
    ) -> Result<(), Halt> {
        let trust_bundles = self.trust_bundles(installed)?;
        let armament = Armament {
            traffic: standing,
            trust_bundles: &trust_bundles,
        };
        let mut failure = None;
        for configuration in &armament.traffic.callers {
            let done = self.put_back_webhook(owner, configuration, &armament).await;
            keep_first(&mut failure, done)?;
        }
        failure.map_or(Ok(()), Err)
    }

    async fn put_back_webhook(
        &self,
        owner: &FieldOwner,
        configuration: &Value,
        armament: &Armament<'_>,
    ) -> Result<(), Halt> {
        let Some(key) = ObjectKey::from_object(configuration) else {
            return Ok(());
        };
        let live = self.live(&key).await?;
        // One that nobody answers may be gone because it kept its own bundle from coming back.
        let is_its_own = live.as_deref().map_or_else(
            || !self.is_dead(configuration),
            |live| self.context.applier.was_applied(configuration, live, owner),
        );
        if is_its_own {
            let armed = armament.trust_bundles.put_into(configuration);
            self.context
                .applier
                .ensure_armed(&armed, configuration, owner)
                .await
                .map_err(refused)?;
        }
        Ok(())
    }
}

/// Keeps the first failure of several steps, each of which is tried. Where the API server does not answer, or may not be asked
/// now, or something is waited for that was just done, no other step is.
fn keep_first(failure: &mut Option<Halt>, done: Result<(), Halt>) -> Result<(), Halt> {
    match done {
        Err(Halt::Error(error)) if concerns_all(&error) => Err(Halt::Error(error)),
        Err(halt @ Halt::Later(..)) => Err(halt),
        Err(halt) => {
            failure.get_or_insert(halt);
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

fn concerns_all(error: &BundleDeploymentError) -> bool {
    let (BundleDeploymentError::Request(error) | BundleDeploymentError::Apply(ApplyError::Request(error))) =
        error
    else {
        return false;
    };
    matches!(
        error,
        RequestError::Timeout { .. } | RequestError::Transport { .. } | RequestError::NotLeading { .. }
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use windlass_cluster::Kind;

    use super::*;
    use crate::install::status::Milestone;

    fn unserved(kind: &'static str) -> Result<(), Halt> {
        let kind = Kind::new("example.com/v1", kind);
        Err(Halt::from(RequestError::UnknownKind { kind }))
    }

    #[test]
    fn what_cannot_be_put_back_keeps_nothing_else_away() {
        let mut failure = None;
        for done in [
            Ok(()),
            Err(Halt::waiting(
                Milestone::Installed,
                "ObjectTerminating",
                "waiting for a",
            )),
            unserved("B"),
        ] {
            assert!(keep_first(&mut failure, done).is_ok());
        }
        let Some(Halt::Gate(outcome)) = failure else {
            panic!("the first failure is lost");
        };
        assert_eq!(outcome.news(), Some(("ObjectTerminating", "waiting for a")));
    }

    #[test]
    fn an_api_server_that_does_not_answer_is_not_asked_for_each_object() {
        let timeout = RequestError::Timeout {
            operation: "apply",
            object: "ConfigMap n/c".to_owned(),
            after: Duration::from_secs(10),
        };
        let error = BundleDeploymentError::Apply(ApplyError::Request(timeout));
        assert!(keep_first(&mut None, Err(Halt::Error(error))).is_err());
    }
}
