//! The controller: a reconciliation walks the pipeline, or the removal, and reports how far it came.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;
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
    halt::{BundleDeploymentError, Halt},
    memory::{Disarmed, Ledgers, Loader, Proofs, StorageVersionHistories, Trials},
    reconciler::{BundleReconciler, Delays},
    report::InstallReport,
    triggers,
};
use crate::{context::Context, controller, install::status::InstallOutcome, reporting::Announced};

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
    shutdown: CancellationToken,
) -> BoxFuture<'static, Result<(), JoinError>> {
    // Boxed: the body is compiled here once, not again in every program that runs it.
    Box::pin(async move {
        let queue = Arc::new(Queue::new());
        triggers::watch_everything(&context);
        let histories = Arc::<StorageVersionHistories>::default();
        let router = triggers::enqueue(context.clone(), queue.clone(), histories.clone());
        let reconciler = Arc::new(BundleReconciler {
            context: context.clone(),
            loader: Loader::default(),
            ledgers: Ledgers::default(),
            proofs: Proofs::default(),
            trials: Trials::default(),
            disarmed: Disarmed::new(context.clock.now()),
            histories,
            announced: Announced::default(),
            timing,
        });
        let reconcile = |name: String| reconciler.clone().reconcile(name);
        controller::run(&context, WORKER, queue, router, || {}, reconcile, shutdown).await
    })
}

// === impl BundleReconciler ===

impl BundleReconciler {
    async fn reconcile(self: Arc<Self>, name: String) -> Result<Action, BundleDeploymentError> {
        let key = kinds::BUNDLE_DEPLOYMENT.object(None, &name);
        let Some(object) = self.context.index.find(&key) else {
            self.loader.forget(&name);
            self.ledgers.forget(&name);
            self.proofs.forget(&name);
            self.trials.forget(&name);
            self.disarmed.forget(&name);
            self.announced.forget(&key);
            return Ok(Action::AwaitChange);
        };
        let deployment: BundleDeployment =
            serde_json::from_value(Value::clone(&object)).map_err(BundleDeploymentError::Decode)?;
        let mut report = InstallReport::new(&deployment);
        let removing = object::is_terminating(&object);
        let walked = if removing {
            report.next = None;
            self.remove(&object, &deployment, &mut report).await
        } else {
            finalizer::ensure(&self.context, &object).await?;
            self.install(&deployment, &mut report).await
        };
        let (outcome, result) = match walked {
            Ok(next) if removing => return Ok(next),
            Ok(next) => (InstallOutcome::Done, Ok(next)),
            Err(Halt::Gate(outcome)) => (outcome, Ok(Action::Requeue(self.timing.recheck))),
            Err(Halt::Later(outcome, after)) => (outcome, Ok(Action::Requeue(after))),
            // No news about the BundleDeployment.
            Err(Halt::Error(error)) if NotLeading::caused(&error) => return Err(error),
            Err(Halt::Error(error)) => {
                let outcome = InstallOutcome::waiting(report.at, "Retrying", chain(&error));
                (outcome, Err(error))
            }
        };
        self.report(&object, &deployment, &report, &outcome).await?;
        result
    }
}
