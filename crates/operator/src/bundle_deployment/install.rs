//! The pipeline of an install, gate by gate.

use std::sync::Arc;

use windlass_api::BundleDeployment;
use windlass_cluster::{apply::Applicant, worker::Action};
use windlass_object::ObjectKey;

use super::{
    halt::Halt,
    memory::Loaded,
    namespace::Namespace,
    reconciler::BundleReconciler,
    report::InstallReport,
    rollout::{Revisions, RolloutStatus},
};
use crate::install::{
    plan::{Phase, Plan, Stage},
    status::Milestone,
};

// === impl BundleReconciler ===

impl BundleReconciler {
    /// Walks the pipeline as far as it is open.
    pub(super) async fn install(
        &self,
        deployment: &BundleDeployment,
        report: &mut InstallReport,
    ) -> Result<Action, Halt> {
        let name = deployment.metadata.name.clone().unwrap_or_default();
        let owner = self.owner(deployment);
        let loaded = self.accepted(&owner, deployment, report).await?;
        let plan = &loaded.plan;
        report.begin(&loaded.bundle);
        report.certificates = self.certificates(plan);

        report.at = Milestone::Installed;
        self.ensure_namespace(&owner, plan).await?;
        self.try_out(deployment, &owner, plan, report).await?;
        self.disarm_dropped(&owner, plan).await?;
        for phase in [
            Phase::Identity,
            Phase::Configuration,
            Phase::Services,
            Phase::Certificates,
        ] {
            self.ensure_phase(&owner, plan, phase).await?;
        }
        let trust_bundles = self.trust_bundles(plan)?;
        self.ensure_crds(&owner, plan, &trust_bundles, Stage::Rollout, report)
            .await?;
        self.disarm_conversions(&owner, plan).await?;
        if self.rolls_out(plan).await? {
            self.gate_on_disarmed(&owner, Milestone::Installed)?;
        }
        self.ensure_phase(&owner, plan, Phase::Deployments).await?;
        self.dismiss_canaries(&owner, &[]).await?;

        report.at = Milestone::Available;
        self.gate_on_deployments(&owner, plan).await?;

        report.at = Milestone::Armed;
        if self.is_anything_unarmed(&owner, plan, report) {
            self.prove(&name, plan, &trust_bundles).await?;
        }
        self.arm(&owner, plan, &trust_bundles, report).await?;

        report.at = Milestone::Migrated;
        self.migrate_storage(&owner, plan, report).await?;
        self.remove_dropped(&owner, plan).await?;
        report.finish();
        Ok(Action::AwaitChange)
    }

    /// The bundle and its plan, if nothing speaks against it; what stands meanwhile is looked after.
    async fn accepted(
        &self,
        owner: &Applicant,
        deployment: &BundleDeployment,
        report: &mut InstallReport,
    ) -> Result<Arc<Loaded>, Halt> {
        report.at = Milestone::Accepted;
        let namespace = &deployment.spec.namespace;
        if self.namespace(namespace).await? == Namespace::Terminating {
            self.let_go(owner, namespace).await?;
        }
        let accepted = self.accept(owner, deployment, report).await;
        if matches!(accepted, Err(Halt::Gate(_))) {
            // What was tried out is not asked for any more.
            self.dismiss_canaries(owner, &[]).await?;
        }
        match accepted {
            Err(Halt::Gate(outcome)) => Err(self.migrate_meanwhile(owner, outcome, report).await),
            accepted => accepted,
        }
    }

    async fn gate_on_deployments(&self, owner: &Applicant, plan: &Plan) -> Result<(), Halt> {
        let mut running = Vec::new();
        let mut rolling = Vec::new();
        for object in plan.phases.of(Phase::Deployments) {
            let Some(key) = ObjectKey::of(object) else {
                continue;
            };
            // A watch that lags shows the revision before, which is complete and says nothing of this one.
            let seen = self.context.index.find(&key);
            let seen = seen.filter(|live| self.context.applier.is_applied(object, live, owner));
            match seen.as_deref().map(RolloutStatus::of) {
                Some(RolloutStatus::Complete) => {}
                Some(RolloutStatus::Running(message)) => {
                    running.push(message);
                    rolling.extend(seen);
                }
                Some(RolloutStatus::Stuck(message)) => {
                    return Err(Halt::failed(Milestone::Available, "RolloutStuck", message));
                }
                None => running.push(format!("waiting to observe {key} as applied")),
            }
        }
        if running.is_empty() {
            return Ok(());
        }
        let now = self.context.clock.now();
        let revisions = Revisions::observe(&self.context.cluster, &plan.namespace, &rolling, now).await?;
        running.extend(revisions.unready);
        Err(Halt::waiting(
            Milestone::Available,
            "RollingOut",
            running.join("; "),
        ))
    }
}
