//! The installed revision beside the next one: while that is tried out, rolls out or is stuck, what its pods live on, and what
//! sends calls to them, is put back.

use serde_json::Value;
use tracing::warn;
use windlass_api::BundleDeployment;
use windlass_cluster::{apply::Applicant, lease::NotLeading, telemetry::chain};
use windlass_object::{ObjectKey, object};

use super::{
    halt::Halt,
    memory::Loaded,
    objects::{Armament, refused},
    reconciler::BundleReconciler,
    report::InstallReport,
    rolling_out::selects_other_pods,
};
use crate::install::{
    plan::{Phase, Plan},
    traffic::{Traffic, makes_way},
};

// === impl BundleReconciler ===

impl BundleReconciler {
    /// Puts back what is missing of the installed revision, or was changed by others, until webhooks call pods of `next`. What
    /// `next` has changed stays as it is. Trouble with it does not keep `next` from what may end the trouble.
    pub(super) async fn keep_beside(
        &self,
        deployment: &BundleDeployment,
        owner: &Applicant,
        next: &Loaded,
        report: &InstallReport,
    ) -> Result<(), Halt> {
        if report.next.is_none() {
            return Ok(());
        }
        let Some(installed) = self.installed_plan(deployment, report).await? else {
            return Ok(());
        };
        let allow_interruption = deployment.spec.upgrade.allow_interruption;
        match self
            .put_back(owner, &installed.plan, &next.plan, allow_interruption)
            .await
        {
            Err(Halt::Error(error)) if NotLeading::caused(&error) => Err(Halt::Error(error)),
            Err(Halt::Error(error)) => {
                let name = &owner.bundle_deployment;
                warn!(bundle_deployment = name, error = %chain(&error), "Cannot keep the installed revision");
                Ok(())
            }
            Err(Halt::Gate(_) | Halt::Later(..)) | Ok(()) => Ok(()),
        }
    }

    async fn put_back(
        &self,
        owner: &Applicant,
        installed: &Plan,
        next: &Plan,
        allow_interruption: bool,
    ) -> Result<(), Halt> {
        let standing = self.standing_traffic(owner, installed);
        if self.is_called_besides(owner, &standing, next) {
            return Ok(());
        }
        for phase in Phase::ALL {
            for desired in installed.phases.of(phase) {
                let is_kept_elsewhere =
                    installed.is_called(desired) || matches!(phase, Phase::Crds | Phase::Admission);
                if !is_kept_elsewhere && !self.is_being_replaced(owner, desired, next, allow_interruption).await? {
                    self.put_back_object(owner, desired).await?;
                }
            }
        }
        for service in &standing.services {
            self.put_back_object(owner, service).await?;
        }
        self.put_back_webhooks(owner, installed, &standing).await
    }

    /// Whether a Deployment of the installed revision was left without its pods, so that one of `next` with another selector
    /// takes its place, or ended with them, to make room. One that somebody deleted with its pods is to come back.
    async fn is_being_replaced(
        &self,
        owner: &Applicant,
        desired: &Value,
        next: &Plan,
        allow_interruption: bool,
    ) -> Result<bool, Halt> {
        let Some(key) = ObjectKey::of(desired) else {
            return Ok(false);
        };
        for successor in next.phases.of(Phase::Deployments) {
            let there = ObjectKey::of(successor).and_then(|other| self.context.index.find(&other));
            let makes_way = makes_way(successor, desired, allow_interruption);
            if ObjectKey::of(successor).as_ref() != Some(&key) {
                if makes_way && there.is_some() && self.live(&key).await?.is_none() {
                    return Ok(true);
                }
            } else if selects_other_pods(successor, desired) && self.live(&key).await?.is_none() {
                let orphans = self.orphans(owner, &next.namespace).await?;
                return Ok(makes_way || !orphans.is_empty());
            }
        }
        Ok(false)
    }

    /// Whether webhooks call pods of another revision than `standing` leads to.
    fn is_called_besides(&self, owner: &Applicant, standing: &Traffic, next: &Plan) -> bool {
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
    async fn put_back_object(&self, owner: &Applicant, desired: &Value) -> Result<(), Halt> {
        let Some(key) = ObjectKey::of(desired) else {
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
        owner: &Applicant,
        installed: &Plan,
        standing: &Traffic,
    ) -> Result<(), Halt> {
        let trust_bundles = self.trust_bundles(installed)?;
        let armament = Armament {
            traffic: standing,
            trust_bundles: &trust_bundles,
        };
        for configuration in &armament.traffic.admission {
            let Some(key) = ObjectKey::of(configuration) else {
                continue;
            };
            let live = self.live(&key).await?;
            let is_its_own = live
                .as_deref()
                .is_none_or(|live| self.context.applier.was_applied(configuration, live, owner));
            if is_its_own {
                let armed = armament.trust_bundles.put_into(configuration);
                self.context
                    .applier
                    .ensure_armed(&armed, configuration, owner)
                    .await
                    .map_err(refused)?;
            }
        }
        Ok(())
    }
}
