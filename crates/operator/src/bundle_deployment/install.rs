//! The pipeline of an install, gate by gate.

use std::sync::Arc;

use windlass_api::BundleDeployment;
use windlass_cluster::{apply::FieldOwner, kinds, telemetry::traces::within, worker::Action};
use windlass_object::ObjectKey;

use super::{
    halt::{Halt, LAG},
    install_traces::InstallPhase,
    memory::Loaded,
    namespace::{Afterwards, Namespace},
    objects::Armament,
    reconciler::BundleReconciler,
    report::InstallReport,
    rollout::Rollout,
};
use crate::install::{
    plan::{Phase, Plan, Stage, waits_for_proof},
    status::{InstallOutcome, Milestone},
    traffic::{Color, Traffic},
};

impl BundleReconciler {
    /// Walks the pipeline as far as it is open; while it is closed at its beginning, the installed revision is kept.
    pub(super) async fn install(
        &self,
        deployment: &BundleDeployment,
        report: &mut InstallReport,
    ) -> Result<Action, Halt> {
        let owner = self.owner(deployment);
        match self.restore_conversions(deployment, &owner).await {
            // What is waited for is waited for below, too.
            Err(Halt::Gate(_) | Halt::Later(..)) | Ok(()) => {}
            Err(Halt::Error(error)) => return Err(self.unblock(&owner, error).await),
        }
        let accepted = match self.accepted(&owner, deployment, report).await {
            Ok(loaded) => self.record(deployment, &loaded, report).await.map(|()| loaded),
            refused => refused,
        };
        let loaded = match accepted {
            Ok(loaded) => loaded,
            Err(Halt::Error(error)) => return Err(self.unblock(&owner, error).await),
            Err(refusal) => return Err(self.keep_installed(deployment, &owner, refusal, report).await),
        };
        let trace = self.trace(deployment, report);
        within(trace, self.walk(deployment, &owner, &loaded, report)).await
    }

    /// Walks the plan of an accepted revision, as far as that goes, and looks how its objects are.
    async fn walk(
        &self,
        deployment: &BundleDeployment,
        owner: &FieldOwner,
        loaded: &Loaded,
        report: &mut InstallReport,
    ) -> Result<Action, Halt> {
        InstallPhase::Prepare.enter();
        self.keep_beside(deployment, owner, loaded, report).await?;
        let walked = match self.keep(deployment, owner, loaded, report).await {
            Err(Halt::Error(error)) => Err(self.unblock(owner, error).await),
            walked => walked,
        };
        self.note_health(deployment, owner, &loaded.plan, &walked, report)
            .await?;
        report.standing = self.standing_beside(deployment, report).await;
        walked
    }

    /// Executes the plan of an accepted or installed revision step by step, and stops at the first step that
    /// has to wait. Writes only what differs.
    pub(super) async fn keep(
        &self,
        deployment: &BundleDeployment,
        owner: &FieldOwner,
        loaded: &Loaded,
        report: &mut InstallReport,
    ) -> Result<Action, Halt> {
        let plan = &*self.in_order(deployment, &loaded.plan, report).await?;
        report.certificates = self.certificates(plan);

        report.at = Milestone::Installed;
        self.ensure_namespace(owner, plan).await?;
        self.carry_through(deployment, owner, plan, report).await?;
        let traffic = self.traffic(owner, plan)?;
        self.swing(deployment, owner, plan, &traffic, report).await?;

        InstallPhase::Settle.enter();
        let trust_bundles = self.trust_bundles(plan)?;
        let armament = Armament {
            traffic: &traffic,
            trust_bundles: &trust_bundles,
        };
        if self.may_leave_pods(deployment, report).await? {
            self.gate_on_old_pods(plan).await?;
            self.delete_orphans(owner, &plan.namespace).await?;
        }
        self.settle(owner, plan, &armament, report).await?;
        report.finish();
        // As it is recorded before anybody is asked: the order in which it is applied may change, and is no news.
        self.note_inventory(deployment, &loaded.plan, report).await?;

        report.at = Milestone::Migrated;
        InstallPhase::Migration.enter();
        self.migrate_storage(owner, plan, &traffic, report).await?;
        self.remove_dropped(deployment, owner, plan, &traffic).await?;
        self.settle_records(deployment, &loaded.plan, report).await?;
        Ok(Action::AwaitChange)
    }

    /// Rolls out and swings webhooks, until they call only pods of the plan and no others are left that they may call.
    pub(super) async fn swing(
        &self,
        deployment: &BundleDeployment,
        owner: &FieldOwner,
        plan: &Plan,
        traffic: &Traffic,
        report: &mut InstallReport,
    ) -> Result<(), Halt> {
        let called_elsewhere = self.is_called_elsewhere(owner, plan, traffic);
        let in_transition = self.is_in_transition(owner, plan, called_elsewhere);
        self.try_out(deployment, owner, plan, traffic, report).await?;
        InstallPhase::Apply.enter();
        self.prepare(owner, plan, traffic, in_transition).await?;
        let trust_bundles = self.trust_bundles(plan)?;
        let armament = Armament {
            traffic,
            trust_bundles: &trust_bundles,
        };
        self.ensure_crds(owner, plan, &armament, Stage::Rollout, report)
            .await?;
        // What never answered is not waited for.
        if called_elsewhere && report.installed.is_some() {
            self.gate_on_called_pods(owner, plan).await?;
        }
        InstallPhase::Rollout.enter();
        if in_transition && !called_elsewhere && !self.is_disarming(owner) {
            self.lead_others(owner, plan).await?;
        }
        let allow_interruption = deployment.spec.upgrade.allow_interruption;
        let rollouts = self
            .roll_out(
                owner,
                plan,
                traffic,
                called_elsewhere,
                in_transition,
                allow_interruption,
            )
            .await?;
        self.dismiss_canaries(owner, &[]).await?;

        report.at = Milestone::Available;
        self.gate_on_pods_to_call(owner, plan, &rollouts, in_transition, report)
            .await?;
        self.freeze(owner, plan, traffic, &rollouts).await?;
        let settled = !self.is_anything_unarmed(owner, plan, traffic, report);
        self.ensure_services(owner, plan, &traffic.services, settled)
            .await?;

        report.at = Milestone::Armed;
        if !settled {
            InstallPhase::Proof.enter();
            self.prove(&owner.bundle_deployment, plan, &armament).await?;
        }
        InstallPhase::Arming.enter();
        self.arm(owner, plan, &armament, settled, report).await?;
        self.disarm_dropped(owner, plan, &armament, report).await?;
        if in_transition {
            InstallPhase::Settle.enter();
            return Err(self.released(owner, &rollouts));
        }
        report.at = Milestone::Available;
        let all: Vec<_> = rollouts.iter().collect();
        self.gate_on_new_pods(owner, plan, &all).await
    }

    /// Waits for the pods that webhooks are about to call. What is called already is put right whatever becomes of some pod;
    /// Deployments that serve nothing may need what is served with the new ones, unless they alone change: then they are
    /// waited for, before what the old ones use ends.
    async fn gate_on_pods_to_call(
        &self,
        owner: &FieldOwner,
        plan: &Plan,
        rollouts: &[Rollout],
        in_transition: bool,
        report: &InstallReport,
    ) -> Result<(), Halt> {
        let is_installed = report.installed.is_some();
        if !in_transition && is_installed && report.next.is_none() {
            return Ok(());
        }
        self.gate_on_freeze(rollouts)?;
        let serving_only = in_transition || !is_installed;
        let awaited: Vec<_> = rollouts
            .iter()
            .filter(|rollout| !serving_only || rollout.is_serving)
            .collect();
        self.gate_on_new_pods(owner, plan, &awaited).await
    }

    /// Whether pods of another revision may be there: one is installed, or was tried in vain.
    async fn may_leave_pods(
        &self,
        deployment: &BundleDeployment,
        report: &InstallReport,
    ) -> Result<bool, Halt> {
        let installed = report.installed.as_ref().map(|installed| installed.revision);
        let ledger = self.ledger(deployment).await?;
        let newest = ledger.newest().map(|newest| newest.number);
        Ok(report.next.is_some() || newest > installed)
    }

    /// Applies what pods need before they start, and nothing that takes from pods of another revision what they live on.
    pub(super) async fn prepare(
        &self,
        owner: &FieldOwner,
        plan: &Plan,
        traffic: &Traffic,
        in_transition: bool,
    ) -> Result<(), Halt> {
        for phase in [
            Phase::Identity,
            Phase::Configuration,
            Phase::Services,
            Phase::Certificates,
        ] {
            self.ensure_phase(owner, plan, phase, in_transition).await?;
        }
        if in_transition {
            self.ensure_admission_of_new_pods(owner, plan).await?;
        }
        self.create_services(owner, &traffic.services).await
    }

    /// Everything is armed: pods of the revision before may end when every API server has observed that. What they lived on is
    /// changed by the next reconciliation.
    fn released(&self, owner: &FieldOwner, rollouts: &[Rollout]) -> Halt {
        let is_held = rollouts.iter().any(Rollout::is_held);
        if let Err(halt) = self.gate_on_disarmed(owner, Milestone::Available) {
            return halt;
        }
        let message = if is_held {
            "webhooks call pods of the new revision; stopping pods of the previous one"
        } else {
            "waiting to observe that Deployments have rolled out"
        };
        let outcome = InstallOutcome::waiting(Milestone::Available, "RollingOut", message);
        Halt::Later(outcome, LAG)
    }

    /// What is done when only pods of the plan are left: the Service with OLM's name leads to them, too, and storage versions are
    /// as desired.
    async fn settle(
        &self,
        owner: &FieldOwner,
        plan: &Plan,
        armament: &Armament<'_>,
        report: &mut InstallReport,
    ) -> Result<(), Halt> {
        let blue: Vec<_> = plan
            .certificates
            .iter()
            .filter_map(|certificate| plan.service(&certificate.service, Color::Blue))
            .collect();
        self.ensure_services(owner, plan, &blue, true).await?;
        let moves = plan.phases.of(Phase::Crds).any(|desired| {
            let key = ObjectKey::from_object(desired);
            let live = key.and_then(|key| self.context.index.find(&key));
            live.is_some_and(|live| waits_for_proof(desired, &live))
        });
        if moves {
            self.gate_on_disarmed(owner, Milestone::Migrated)?;
        }
        self.ensure_crds(owner, plan, armament, Stage::Settled, report)
            .await
    }

    /// The bundle and its plan, if nothing speaks against it.
    async fn accepted(
        &self,
        owner: &FieldOwner,
        deployment: &BundleDeployment,
        report: &mut InstallReport,
    ) -> Result<Arc<Loaded>, Halt> {
        report.at = Milestone::Accepted;
        let namespace = &deployment.spec.namespace;
        let state = self.namespace(namespace).await?;
        let was_installed = || !self.owned(owner, &kinds::CUSTOM_RESOURCE_DEFINITION).is_empty();
        if state == Namespace::Terminating || (state == Namespace::Absent && was_installed()) {
            self.let_go(owner, namespace, state, Afterwards::Installed)
                .await?;
        }
        let mut accepted = self.accept(owner, deployment, report).await;
        if let Ok(loaded) = &accepted
            && let Err(halt) = self.gate_on_dropped(owner, &loaded.plan).await
        {
            accepted = Err(halt);
        }
        if matches!(accepted, Err(Halt::Gate(_))) {
            // What was tried out is not asked for any more.
            self.dismiss_canaries(owner, &[]).await?;
        }
        accepted
    }
}
