//! Keeps serving certificates: look, plan, do, report.
//!
//! ```text
//! CA Secret, serving Secret, targets, endpoints, Deployment -> Observation -> rotation::plan -> steps
//!                              ^                                                                  |
//!                              `---- after each write of a Secret, and whenever something changes '
//! ```
//!
//! Nothing that matters is remembered from one reconciliation to the next. Writes of Secrets replace what was read, and
//! injections are guarded by what was seen: a reconciliation that comes too late does nothing.
//!
//! Beside it, a target that somebody else wrote is repaired at once.

mod authority_secret;
mod certificates;
mod endpoints;
mod execute;
mod history;
mod mint;
mod repair;
mod report;
mod rollout;
mod routing;
mod scene;
pub(super) mod secrets;
mod serving_secret;
mod targets;
#[cfg(test)]
mod tests;
mod wanted;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use jiff::SignedDuration;
use thiserror::Error;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;

use crate::{
    cluster::{RequestError, keys::GenerateKeyError},
    controllers::{
        Context, controller,
        status::Announced,
        worker::{self, Next, Queue},
    },
    domain::{
        object::{self, ObjectKey},
        pki::{IssueError, ReadCredentialsError, ReadPrivateKeyError},
        rotation::{self, Clock, Mark},
    },
};

pub use authority_secret::WriteAuthoritiesError;
pub use certificates::{UnknownCertificate, WriteBundleError};
pub use mint::MintError;
pub use rotation::Timing;
pub use wanted::ReadCertificateError;

use execute::{Effect, INJECTIONS};
use history::Histories;
use repair::Repair;
use wanted::Wanted;

/// Reconciles ServingCertificates.
struct Reconciler {
    context: Arc<Context>,
    timing: Timing,
    histories: Histories,
    announced: Announced,
    /// Tells the marks of this process from those of others.
    run: u64,
    started: Instant,
}

/// Why a reconciliation has to be tried again.
#[derive(Debug, Error)]
pub enum ReconcileError {
    /// An object cannot be read or written.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The ServingCertificate is not what its schema says.
    #[error(transparent)]
    Read(#[from] ReadCertificateError),
    /// A key cannot be generated.
    #[error(transparent)]
    Generate(#[from] GenerateKeyError),
    /// A CA cannot be made.
    #[error(transparent)]
    Mint(#[from] MintError),
    /// The CAs cannot be stored.
    #[error(transparent)]
    Store(#[from] WriteAuthoritiesError),
    /// A serving certificate cannot be issued.
    #[error(transparent)]
    Issue(#[from] IssueError),
    /// The key that is kept cannot be read.
    #[error("the key of the serving certificate: {0}")]
    Key(#[from] ReadPrivateKeyError),
    /// A serving certificate and its key do not belong together.
    #[error(transparent)]
    Credentials(#[from] ReadCredentialsError),
    /// A trust bundle cannot be written.
    #[error(transparent)]
    Bundle(#[from] WriteBundleError),
    /// A certificate is missing.
    #[error(transparent)]
    Unknown(#[from] UnknownCertificate),
    /// The status cannot be written as JSON.
    #[error("cannot write the status")]
    Encode(#[source] serde_json::Error),
}

/// How the worker of this controller works.
const WORKER: worker::Settings = worker::Settings::new("serving-certificate", 8);

/// How the worker of repairs works.
const REPAIRS: worker::Settings = worker::Settings::new("target-repair", INJECTIONS);

/// How often a plan is made at most before others have their turn. A rotation takes no more than a handful.
const ROUNDS: usize = 16;

/// The shortest pause between two looks at the same ServingCertificate that nothing has changed for.
const BREATH: Duration = Duration::from_millis(50);

/// How long until a ServingCertificate is looked at again that something is in the way of, which no watch may see.
const OBSTRUCTED: Duration = Duration::from_secs(30);

/// Runs the controller until `shutdown`. The lives in `timing` are replaced by those that ServingCertificates ask for.
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
    let repairs = Arc::new(Queue::new());
    let router = routing::route(context.clone(), queue.clone(), repairs.clone());
    let reconciler = Arc::new(Reconciler {
        context: context.clone(),
        timing,
        histories: Histories::default(),
        announced: Announced::default(),
        run: rand::random(),
        started: Instant::now(),
    });
    let begin = || routing::add_orphans(&context, &queue);
    let reconcile = |certificate: ObjectKey| reconciler.clone().reconcile(certificate);
    let rotating = controller::run(
        &context,
        WORKER,
        queue.clone(),
        router,
        begin,
        reconcile,
        shutdown.clone(),
    );
    let repair = |repair: Repair| reconciler.clone().repair(repair);
    let routed = std::future::pending();
    let repairing = controller::run(&context, REPAIRS, repairs, routed, || {}, repair, shutdown);
    tokio::try_join!(rotating, repairing).map(|_| ())
}

// === impl Reconciler ===

impl Reconciler {
    async fn reconcile(self: Arc<Self>, key: ObjectKey) -> Result<Next, ReconcileError> {
        for _ in 0..ROUNDS {
            // Anew each time: a look takes seconds where an endpoint does not answer, and what is made for a
            // ServingCertificate that has gone meanwhile is collected as garbage, which brings us back to make it again.
            let Some(wanted) = self.wanted(&key)? else {
                self.forget(&key).await?;
                return Ok(Next::Change);
            };
            let timing = wanted.timing(&self.timing);
            let mut scene = match self.look(&wanted, &timing).await? {
                Ok(scene) => scene,
                Err(obstacle) => {
                    self.report_obstacle(&wanted, &obstacle).await?;
                    return Ok(Next::After(OBSTRUCTED));
                }
            };
            let plan = rotation::plan(&scene.observation, &timing);
            let done = self.execute(&wanted, &mut scene, &plan.steps, &timing).await;
            match done {
                Ok(Effect::LookAgain) => continue,
                Ok(Effect::Awaited) => return Ok(Next::After(timing.poll.unsigned_abs())),
                Ok(Effect::Settled) | Err(_) => {}
            }
            self.report(&wanted, &scene.observation, &plan).await?;
            done?;
            return Ok(Next::After(plan.wake_up.unsigned_abs().max(BREATH)));
        }
        Ok(Next::After(self.timing.poll.unsigned_abs()))
    }

    /// What a ServingCertificate asks for now; nothing, if it is gone or going.
    fn wanted(&self, key: &ObjectKey) -> Result<Option<Wanted>, ReconcileError> {
        let object = self.context.index.find(key);
        let object = object.filter(|object| !object::is_terminating(object));
        Ok(object
            .map(|object| Wanted::read(key.clone(), object))
            .transpose()?)
    }

    /// What the clocks say.
    fn clock(&self) -> Clock {
        let uptime = SignedDuration::try_from(self.started.elapsed()).unwrap_or(SignedDuration::MAX);
        Clock {
            now: self.context.clock.now(),
            mark: Mark {
                run: self.run,
                uptime,
            },
        }
    }
}
