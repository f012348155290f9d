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
    /// Walks the pipeline as far as it is open; while it is closed at its beginning, the installed revision is kept.
    pub(super) async fn install(
        &self,
        deployment: &BundleDeployment,
        report: &mut InstallReport,
    ) -> Result<Action, Halt> {
        let owner = self.owner(deployment);
        let accepted = match self.accepted(&owner, deployment, report).await {
            Ok(loaded) => self.record(deployment, &loaded, report).await.map(|()| loaded),
            refused => refused,
        };
        let loaded = match accepted {
            Ok(loaded) => loaded,
            Err(refusal) => return Err(self.keep_installed(deployment, &owner, refusal, report).await),
        };
        let walked = self.keep(deployment, &owner, &loaded, report).await;
        report.standing = self.standing_beside(deployment, report).await;
        walked
    }

    /// Walks the plan of an accepted or installed revision. What is there already costs no write.
    pub(super) async fn keep(
        &self,
        deployment: &BundleDeployment,
        owner: &Applicant,
        loaded: &Loaded,
        report: &mut InstallReport,
    ) -> Result<Action, Halt> {
        let plan = &loaded.plan;
        report.certificates = self.certificates(plan);

        report.at = Milestone::Installed;
        self.ensure_namespace(owner, plan).await?;
        self.try_out(deployment, owner, plan, report).await?;
        self.disarm_dropped(owner, plan).await?;
        for phase in [
            Phase::Identity,
            Phase::Configuration,
            Phase::Services,
            Phase::Certificates,
        ] {
            self.ensure_phase(owner, plan, phase).await?;
        }
        let trust_bundles = self.trust_bundles(plan)?;
        self.ensure_crds(owner, plan, &trust_bundles, Stage::Rollout, report)
            .await?;
        self.disarm_conversions(owner, plan).await?;
        if self.rolls_out(plan).await? {
            self.gate_on_disarmed(owner, Milestone::Installed)?;
        }
        self.ensure_phase(owner, plan, Phase::Deployments).await?;
        self.dismiss_canaries(owner, &[]).await?;

        report.at = Milestone::Available;
        self.gate_on_deployments(owner, plan).await?;

        report.at = Milestone::Armed;
        if self.is_anything_unarmed(owner, plan, report) {
            self.prove(&owner.bundle_deployment, plan, &trust_bundles).await?;
        }
        self.arm(owner, plan, &trust_bundles, report).await?;
        report.finish();
        self.note_inventory(deployment, plan, report).await?;

        report.at = Milestone::Migrated;
        self.migrate_storage(owner, plan, report).await?;
        self.remove_dropped(owner, plan).await?;
        self.settle_records(deployment, plan, report).await?;
        Ok(Action::AwaitChange)
    }

    /// The bundle and its plan, if nothing speaks against it.
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
        accepted
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
