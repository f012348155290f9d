//! Installs bundles: load, plan, apply phase by phase, prove, arm, keep, remove.
//!
//! ```text
//! source -> Bundle -> Plan -> canary (upgrades of what converts) -> what is dropped is disarmed
//!                                                                              |
//!                Deployments <- definitions <- identity, configuration, services, certificates
//!                     |
//!           every endpoint of the new revision -> proof (handshakes, conversions) -> armed
//!                                                                                      |
//!                  what is dropped is removed <- stored objects rewritten, a page at a time
//! ```
//!
//! Every reconciliation walks the whole way and stops at the first gate that is not open yet. It writes only what is
//! missing, so walking again costs nothing.

mod acceptance;
mod arming;
mod canary;
mod crd_upgrade;
mod deletion;
mod disarming;
mod finalizer;
mod install;
mod loading;
mod lookup;
mod namespace;
mod ownership;
mod proof;
mod removal;
mod report;
pub(super) mod rollout;
mod routing;
mod storage;
mod trust;

use std::{sync::Arc, time::Duration};

use serde_json::Value;
use thiserror::Error;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;

use crate::{
    api::BundleDeployment,
    cluster::{RequestError, apply::ApplyError, kinds, lease::NotLeading},
    controllers::{
        Context, controller,
        status::Announced,
        worker::{self, Next, Queue},
    },
    domain::{
        object,
        status::{Standing, Step},
    },
    telemetry::chain,
};

use crd_upgrade::Trials;
use disarming::Disarmed;
use loading::Loader;
use proof::Proofs;
use report::Survey;
use storage::Tenures;

/// Reconciles BundleDeployments.
struct Reconciler {
    context: Arc<Context>,
    loader: Loader,
    proofs: Proofs,
    trials: Trials,
    disarmed: Disarmed,
    tenures: Arc<Tenures>,
    announced: Announced,
    timing: Timing,
}

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// How long what was disarmed is still served, until every API server has heard of it.
    pub disarmed: Duration,
    /// How long an object may still be stored in the version before, after the storage version has moved: until every API
    /// server has heard of it, and has answered what it was asked before.
    pub stored: Duration,
    /// How often a gate is looked at that no watch opens.
    pub look_again: Duration,
}

/// Why a reconciliation has to be tried again.
#[derive(Debug, Error)]
pub enum ReconcileError {
    /// An object cannot be read or written.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// An object cannot be applied.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// The BundleDeployment is not what its schema says.
    #[error("cannot read the BundleDeployment")]
    Decode(#[source] serde_json::Error),
    /// The status cannot be written as JSON.
    #[error("cannot write the status")]
    Encode(#[source] serde_json::Error),
    /// A thread that reads a source was lost.
    #[error("reading the source was interrupted")]
    Interrupted(#[from] JoinError),
}

/// Why the pipeline goes no further for now.
enum Halt {
    /// At a gate that is not open yet, or closed for good until somebody acts.
    Gate(Standing),
    /// The same, to be looked at again after a time of its own.
    Later(Standing, Duration),
    /// By an error that may be gone at the next try.
    Error(ReconcileError),
}

/// How the worker of this controller works.
const WORKER: worker::Settings = worker::Settings::new("bundle-deployment", 4);

// === impl Timing ===

impl Default for Timing {
    fn default() -> Self {
        Self {
            disarmed: Duration::from_secs(10),
            // The same for hearing of it, and a minute, which is how long kube-apiserver works on a request at the most:
            // its --request-timeout. Requests of before are carried out in the version of before (`tearDown` of its
            // `customresource_handler.go` waits for them).
            stored: Duration::from_secs(70),
            look_again: Duration::from_secs(5),
        }
    }
}

// === impl Halt ===

impl Halt {
    /// Waits at a gate that opens by itself.
    fn waiting(at: Step, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Gate(Standing::waiting(at, reason, message))
    }

    /// Waits at a gate until somebody acts.
    fn failed(at: Step, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Gate(Standing::failed(at, reason, message))
    }
}

impl<E: Into<ReconcileError>> From<E> for Halt {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

/// Runs the controller until `shutdown`.
///
/// # Errors
///
/// When a reconciliation panicked.
pub async fn run(
    context: Arc<Context>,
    timing: Timing,
    shutdown: CancellationToken,
) -> Result<(), JoinError> {
    let queue = Arc::new(Queue::new());
    routing::watch_everything(&context);
    let tenures = Arc::<Tenures>::default();
    let router = routing::route(context.clone(), queue.clone(), tenures.clone());
    let reconciler = Arc::new(Reconciler {
        context: context.clone(),
        loader: Loader::default(),
        proofs: Proofs::default(),
        trials: Trials::default(),
        disarmed: Disarmed::new(context.clock.now()),
        tenures,
        announced: Announced::default(),
        timing,
    });
    let reconcile = |name: String| reconciler.clone().reconcile(name);
    controller::run(&context, WORKER, queue, router, || {}, reconcile, shutdown).await
}

// === impl Reconciler ===

impl Reconciler {
    async fn reconcile(self: Arc<Self>, name: String) -> Result<Next, ReconcileError> {
        let key = kinds::BUNDLE_DEPLOYMENT.object(None, &name);
        let Some(object) = self.context.index.find(&key) else {
            self.loader.forget(&name);
            self.proofs.forget(&name);
            self.trials.forget(&name);
            self.disarmed.forget(&name);
            self.announced.forget(&key);
            return Ok(Next::Change);
        };
        let deployment: BundleDeployment =
            serde_json::from_value(Value::clone(&object)).map_err(ReconcileError::Decode)?;
        let mut survey = Survey::new(&deployment);
        let removing = object::is_terminating(&object);
        let walked = if removing {
            self.remove(&object, &deployment, &mut survey).await
        } else {
            finalizer::ensure(&self.context, &object).await?;
            self.install(&deployment, &mut survey).await
        };
        let (standing, result) = match walked {
            Ok(next) if removing => return Ok(next),
            Ok(next) => (Standing::Done, Ok(next)),
            Err(Halt::Gate(standing)) => (standing, Ok(Next::After(self.timing.look_again))),
            Err(Halt::Later(standing, after)) => (standing, Ok(Next::After(after))),
            // No news about the BundleDeployment.
            Err(Halt::Error(error)) if NotLeading::caused(&error) => return Err(error),
            Err(Halt::Error(error)) => {
                let standing = Standing::waiting(survey.at, "Retrying", chain(&error));
                (standing, Err(error))
            }
        };
        self.report(&object, &deployment, &survey, &standing).await?;
        result
    }
}
