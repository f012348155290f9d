//! The pipeline of an install, gate by gate.

use serde_json::Value;

use super::{
    Halt, Reconciler,
    namespace::Namespace,
    report::Survey,
    rollout::{Revisions, Rollout},
    trust::TrustBundles,
};
use crate::{
    api::{BundleDeployment, WebhookState},
    cluster::apply::{ApplyError, Owner},
    controllers::worker::Next,
    domain::{
        object::ObjectKey,
        plan::{Phase, Plan, Stage, staged, stops_serving},
        status::Step,
    },
};

// === impl Reconciler ===

impl Reconciler {
    /// Walks the pipeline as far as it is open.
    pub(super) async fn install(
        &self,
        deployment: &BundleDeployment,
        survey: &mut Survey,
    ) -> Result<Next, Halt> {
        let name = deployment.metadata.name.clone().unwrap_or_default();
        let owner = self.owner(deployment);
        survey.at = Step::Accepted;
        let namespace = &deployment.spec.namespace;
        if self.namespace(namespace).await? == Namespace::Terminating {
            self.let_go(&owner, namespace).await?;
        }
        let accepted = self.accept(&owner, deployment, survey).await;
        if matches!(accepted, Err(Halt::Gate(_))) {
            // What was tried out is not asked for any more.
            self.dismiss_canaries(&owner, &[]).await?;
        }
        let loaded = match accepted {
            Err(Halt::Gate(standing)) => return Err(self.migrate_meanwhile(&owner, standing, survey).await),
            accepted => accepted?,
        };
        let plan = &loaded.plan;
        survey.begin(&loaded.bundle);
        survey.certificates = self.certificates(plan);

        survey.at = Step::Installed;
        self.ensure_namespace(&owner, plan).await?;
        self.try_out(deployment, &owner, plan, survey).await?;
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
        self.ensure_definitions(&owner, plan, &trust_bundles, Stage::Rollout, survey)
            .await?;
        self.disarm_conversions(&owner, plan).await?;
        if self.rolls_out(plan).await? {
            self.gate_on_disarmed(&owner, Step::Installed)?;
        }
        self.ensure_phase(&owner, plan, Phase::Deployments).await?;
        self.dismiss_canaries(&owner, &[]).await?;

        survey.at = Step::Available;
        self.gate_on_deployments(&owner, plan).await?;

        survey.at = Step::Armed;
        if self.is_anything_unarmed(&owner, plan, survey) {
            self.prove(&name, plan, &trust_bundles).await?;
        }
        self.arm(&owner, plan, &trust_bundles, survey).await?;

        survey.at = Step::Migrated;
        self.migrate_storage(&owner, plan, survey).await?;
        self.remove_dropped(&owner, plan).await?;
        survey.finish();
        Ok(Next::Change)
    }

    async fn ensure_phase(&self, owner: &Owner, plan: &Plan, phase: Phase) -> Result<(), Halt> {
        for object in plan.phases.of(phase) {
            self.ensure(object, owner).await?;
        }
        Ok(())
    }

    /// Applies an object.
    pub(super) async fn ensure(&self, object: &Value, owner: &Owner) -> Result<(), Halt> {
        self.context
            .applier
            .ensure(object, owner)
            .await
            .map_err(refused)?;
        Ok(())
    }

    /// Applies the definitions as far as `stage` allows. One that is new and converts is born armed: nothing can be
    /// stored in it before its webhook answers.
    pub(super) async fn ensure_definitions(
        &self,
        owner: &Owner,
        plan: &Plan,
        trust_bundles: &TrustBundles,
        stage: Stage,
        survey: &mut Survey,
    ) -> Result<(), Halt> {
        for wanted in plan.phases.of(Phase::Definitions) {
            let Some(key) = ObjectKey::of(wanted) else {
                continue;
            };
            let live = self.definition(&key, wanted).await?;
            if live.as_deref().is_some_and(|live| stops_serving(wanted, live)) {
                self.note_disarmed(owner);
            }
            let body = staged(wanted, live.as_deref(), stage);
            let Some(conversion) = plan.conversion(&key.name) else {
                self.ensure(&body, owner).await?;
                continue;
            };
            let mut armed = body.clone();
            armed["spec"]["conversion"] = trust_bundles.stanza(conversion);
            self.context
                .applier
                .ensure_armed(&armed, &body, owner)
                .await
                .map_err(refused)?;
            if live.is_none() {
                survey.set_conversion(&key.name, WebhookState::Arming);
            }
        }
        Ok(())
    }

    async fn gate_on_deployments(&self, owner: &Owner, plan: &Plan) -> Result<(), Halt> {
        let mut running = Vec::new();
        let mut rolling = Vec::new();
        for object in plan.phases.of(Phase::Deployments) {
            let Some(key) = ObjectKey::of(object) else {
                continue;
            };
            // A watch that lags shows the revision before, which is complete and says nothing of this one.
            let seen = self.context.index.find(&key);
            let seen = seen.filter(|live| self.context.applier.is_applied(object, live, owner));
            match seen.as_deref().map(Rollout::of) {
                Some(Rollout::Complete) => {}
                Some(Rollout::Running(message)) => {
                    running.push(message);
                    rolling.extend(seen);
                }
                Some(Rollout::Stuck(message)) => {
                    return Err(Halt::failed(Step::Available, "RolloutStuck", message));
                }
                None => running.push(format!("{key} has not been seen as it was applied yet")),
            }
        }
        if running.is_empty() {
            return Ok(());
        }
        let now = self.context.clock.now();
        let revisions = Revisions::observe(&self.context.cluster, &plan.namespace, &rolling, now).await?;
        running.extend(revisions.unready);
        Err(Halt::waiting(Step::Available, "RollingOut", running.join("; ")))
    }
}

/// A foreign object is no error that goes away by trying again.
pub(super) fn refused(error: ApplyError) -> Halt {
    match error {
        ApplyError::Foreign { .. } => Halt::failed(Step::Installed, "ForeignObject", error.to_string()),
        ApplyError::Terminating { .. } => {
            Halt::waiting(Step::Installed, "ObjectTerminating", error.to_string())
        }
        ApplyError::Request(error) if error.is_invalid() => {
            Halt::failed(Step::Installed, "ObjectInvalid", error.to_string())
        }
        ApplyError::Request(error) if error.is_forbidden() => {
            Halt::failed(Step::Installed, "Forbidden", error.to_string())
        }
        error => error.into(),
    }
}
