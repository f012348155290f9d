//! The controller: a reconciliation walks the pipeline, or the removal, and reports how far it came.

use std::sync::Arc;

use futures::future::BoxFuture;
use oci::RegistryOptions;
use serde_json::{Value, json};
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use windlass_api::BundleDeployment;
use windlass_cluster::{
    kinds,
    lease::NotLeading,
    telemetry::chain,
    worker::{self, Action, Queue},
};
use windlass_object::object;

use super::{
    finalizer,
    halt::{BundleDeploymentError, Halt, LAG},
    install_traces::InstallTraces,
    memory::{
        Decisions, Disarmed, DryRuns, Ledgers, Loader, Proofs, Reported, Seats, StorageVersionHistories,
        SufficientRights, Trials, Unretained, status_of,
    },
    pause::paused_by,
    polling,
    pulling::ImagePuller,
    reconciler::{BundleReconciler, Delays},
    report::InstallReport,
    triggers,
};
use crate::{
    announced::Announced,
    context::Context,
    controller,
    install::status::{BundleHealth, InstallOutcome, Milestone},
};

/// How the worker of this controller works.
const WORKER: worker::Settings = worker::Settings::new("bundle-deployment", 4);

/// Runs the controller until `shutdown`.
///
/// # Errors
///
/// When a reconciliation panicked.
pub fn run(
    context: Arc<Context>,
    timing: Delays,
    registries: RegistryOptions,
    shutdown: CancellationToken,
) -> BoxFuture<'static, Result<(), JoinError>> {
    // Boxed: the body is compiled here once, not again in every program that runs it.
    Box::pin(async move {
        let queue = Arc::new(Queue::new());
        triggers::watch_everything(&context);
        let histories = Arc::<StorageVersionHistories>::default();
        let reported = Arc::<Reported>::default();
        let router = triggers::enqueue(
            context.clone(),
            queue.clone(),
            histories.clone(),
            reported.clone(),
        );
        let images = Arc::new(ImagePuller::new(&context, queue.clone(), registries, timing.tags));
        let begin = |since| {
            let reconciler = Arc::new(BundleReconciler {
                context: context.clone(),
                loader: Loader::default(),
                images,
                decisions: Decisions::default(),
                ledgers: Ledgers::default(),
                proofs: Proofs::default(),
                seats: Seats::default(),
                trials: Trials::default(),
                dry_runs: DryRuns::default(),
                disarmed: Disarmed::new(since),
                sufficient: SufficientRights::default(),
                unretained: Unretained::default(),
                histories,
                reported,
                announced: Announced::default(),
                installs: InstallTraces::default(),
                timing,
            });
            move |name: String| reconciler.clone().reconcile(name)
        };
        let router = async {
            tokio::select! {
                () = router => {}
                () = polling::poll(&context, &queue, timing.recheck) => {}
            }
        };
        controller::run(
            &context,
            WORKER,
            |_| false,
            queue.clone(),
            router,
            begin,
            shutdown,
        )
        .await
    })
}

impl BundleReconciler {
    pub(super) async fn reconcile(self: Arc<Self>, name: String) -> Result<Action, BundleDeploymentError> {
        let key = kinds::BUNDLE_DEPLOYMENT.object(None, &name);
        let Some(object) = self.context.index.find(&key) else {
            self.loader.forget(&name);
            self.images.forget(&name);
            self.decisions.forget(&name);
            self.ledgers.forget(&name);
            self.proofs.forget(&name);
            self.seats.forget(&name);
            self.withdraw_probes(&name).await?;
            self.trials.forget(&name);
            self.dry_runs.forget(&name);
            self.disarmed.forget(&name);
            self.sufficient.forget(&name);
            self.unretained.forget(&name);
            self.context.interpretation.forget(&name);
            self.reported.forget(&name);
            self.announced.forget(&key);
            self.installs.forget(&name);
            return Ok(Action::AwaitChange);
        };
        let deployment = match serde_json::from_value::<BundleDeployment>(Value::clone(&object)) {
            Ok(deployment) => deployment,
            Err(error) => return self.report_unreadable(&object, error).await,
        };
        if let Some(why) = paused_by(&object) {
            self.images.pulls.drop_files(&name);
            return self.hold(&object, &deployment, why).await;
        }
        let mut report = InstallReport::new(&deployment);
        let removing = object::is_terminating(&object);
        let walked = if removing {
            report.next = None;
            self.images.pulls.drop_files(&name);
            self.remove(&object, &deployment, &mut report).await
        } else {
            self.hold_and_install(&object, &deployment, &mut report).await
        };
        let (outcome, result) = match walked {
            Ok(next) if removing => return Ok(next),
            // No watch tells of the first real object.
            Ok(Action::AwaitChange) if self.proofs.are_doubtful(&name) && !report.follows_soon => {
                (InstallOutcome::Done, Ok(Action::Requeue(self.timing.doubtful)))
            }
            Ok(Action::AwaitChange) => (InstallOutcome::Done, Ok(self.next_look(&deployment, &report))),
            Ok(next) => (InstallOutcome::Done, Ok(next)),
            Err(Halt::Gate(outcome)) => (outcome, Ok(Action::Requeue(self.timing.recheck))),
            Err(Halt::Later(outcome, after)) => (outcome, Ok(Action::Requeue(after))),
            // No news about the BundleDeployment.
            Err(Halt::Error(error)) if NotLeading::is_cause_of(&error) => return Err(error),
            Err(Halt::Error(error)) => (retrying(&report, &error), Err(error)),
        };
        // Where only conversions are armed, the status says first that they are: whoever starts again then need not ask.
        let is_first = outcome == InstallOutcome::Done && !report.webhooks.is_empty();
        let withdrawn = match is_first {
            true => self.withdraw_probes(&name).await.map_err(Into::into),
            false => Ok(()),
        };
        let (outcome, result) = match withdrawn {
            Ok(()) => (outcome, result),
            Err(error) if NotLeading::is_cause_of(&error) => return Err(error),
            // Everything is armed, and that is said.
            Err(error) => (retrying(&report, &error), Err(error)),
        };
        self.installs.note(&name, &outcome);
        if !self.report(&object, &deployment, &report, &outcome).await? {
            return Ok(Action::Requeue(LAG));
        }
        if outcome == InstallOutcome::Done {
            self.installs.finish(&name);
        }
        // Where an error says nothing of what is needed, what is asked stays for the next try.
        if !is_first && result.is_ok() {
            self.withdraw_probes(&name).await?;
        }
        Ok(self.announce_contested(&object, &name, result?))
    }

    /// When to look again at what is installed.
    fn next_look(&self, deployment: &BundleDeployment, report: &InstallReport) -> Action {
        let is_another_account = deployment.spec.service_account_name.is_some();
        match (&report.health, report.is_customized || is_another_account) {
            // The status says by now that it is ready, and no change tells of that.
            (BundleHealth::Healthy, _) if report.follows_soon => Action::Requeue(LAG),
            (BundleHealth::Healthy, false) => Action::AwaitChange,
            // A script may know the time, and no watch tells of rights that are taken away.
            (BundleHealth::Healthy, true) => Action::Requeue(self.timing.doubtful),
            _ => Action::Requeue(self.timing.recheck),
        }
    }

    /// Installs what cannot go any more without being disarmed.
    async fn hold_and_install(
        &self,
        object: &Value,
        deployment: &BundleDeployment,
        report: &mut InstallReport,
    ) -> Result<Action, Halt> {
        finalizer::ensure(&self.context, object).await?;
        self.learn_rules().await?;
        if let Some(name) = &deployment.metadata.name {
            self.unretained.forget(name);
            self.context.interpretation.begin_reconcile(name);
        }
        self.install(deployment, report).await
    }

    /// Says of a BundleDeployment that cannot be read that it cannot: others wait to hear what it claims.
    async fn report_unreadable(
        &self,
        object: &Value,
        error: serde_json::Error,
    ) -> Result<Action, BundleDeploymentError> {
        let deployment = without_spec(object).map_err(BundleDeploymentError::Decode)?;
        let message = format!(
            "cannot read the BundleDeployment: {error}; it may be for a newer release of Windlass: upgrade Windlass, or change the spec"
        );
        let outcome = InstallOutcome::failed(Milestone::Accepted, "SpecUnreadable", message);
        let report = InstallReport::new(&deployment);
        match self.report(object, &deployment, &report, &outcome).await? {
            true => Ok(Action::AwaitChange),
            false => Ok(Action::Requeue(LAG)),
        }
    }
}

/// Waits where `report` ends, for the next try.
fn retrying(report: &InstallReport, error: &BundleDeploymentError) -> InstallOutcome {
    InstallOutcome::waiting(report.at, "Retrying", chain(error))
}

/// A BundleDeployment of which only the metadata and the status are read, the latter as far as it can be.
fn without_spec(object: &Value) -> Result<BundleDeployment, serde_json::Error> {
    serde_json::from_value(json!({
        "apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": object["metadata"],
        "spec": {"namespace": "", "source": {}}, "status": status_of(object).unwrap_or_default(),
    }))
}
