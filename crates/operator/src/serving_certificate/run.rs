//! The controller: a reconciliation looks, plans, does and reports.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use windlass_cluster::{
    WritePace,
    telemetry::traces::within,
    worker::{self, Action, Queue},
};
use windlass_object::ObjectKey;
use windlass_trust::rotation::{self, Timing};

use super::{
    error::ServingCertificateError, execute::StepsOutcome, history::Histories, neighbours::Neighbours,
    obstacles::Obstacles, reconciler::CertificateReconciler, repair::Repair, rotation_traces::RotationTraces,
    secrets::KnownSecrets, triggers, turns::DialTurns,
};
use crate::{ca_injectors, context::Context, controller, reporting::Announced, standby::StandbyRepairs};

/// How the worker of this controller works.
const WORKER: worker::Settings = worker::Settings::new("serving-certificate", 8).with_slow_after(LONG);

/// How long no look takes where every endpoint answers, on a slow machine either; one that does not answer takes five seconds.
const LONG: Duration = Duration::from_secs(4);

/// How the worker of repairs works.
const REPAIRS: worker::Settings = worker::Settings::new("target-repair", WritePace::MOST);

/// How the worker of repairs works in a process that stands by.
const STANDBY: worker::Settings = worker::Settings::new("standby-repair", WritePace::MOST);

/// How often a plan is made at most before others have their turn. A rotation takes no more than a handful.
const ROUNDS: usize = 16;

/// The shortest pause between two looks at the same ServingCertificate that nothing has changed for.
const BREATH: Duration = Duration::from_millis(50);

/// How long until a ServingCertificate is looked at again while its targets may still be listed.
const LISTING: Duration = Duration::from_secs(1);

/// Runs the controller until `shutdown`. The lives in `timing` are replaced by those that ServingCertificates ask for.
/// Through `standby` targets are repaired while this process does not lead.
///
/// # Errors
///
/// When a reconciliation panicked.
pub fn run(
    context: Arc<Context>,
    standby: Arc<Context>,
    timing: Timing,
    shutdown: CancellationToken,
) -> BoxFuture<'static, Result<(), JoinError>> {
    // Boxed: the body is compiled here once, not again in every program that runs it.
    Box::pin(async move {
        let queue = Arc::new(Queue::new());
        triggers::watch_everything(&context);
        let repairs = Arc::new(Queue::new());
        let standing_by = StandbyRepairs::new(context.leadership.clone());
        let router = triggers::enqueue(
            context.clone(),
            queue.clone(),
            repairs.clone(),
            standing_by.clone(),
        );
        let new = |context: &Arc<Context>, since| {
            ca_injectors::look(context);
            CertificateReconciler {
                context: context.clone(),
                timing: timing.clone(),
                histories: Histories::default(),
                turns: DialTurns::new(timing.poll.unsigned_abs()),
                obstacles: Obstacles::default(),
                secrets: KnownSecrets::default(),
                neighbours: Neighbours::default(),
                announced: Announced::default(),
                rotations: RotationTraces::default(),
                bundles: Mutex::default(),
                run: rand::random(),
                since,
            }
        };
        // Both workers begin with one leadership, and share what is remembered since.
        let shared = OnceLock::new();
        let reconciler = |since| shared.get_or_init(|| Arc::new(new(&context, since))).clone();
        let rotate = |since| {
            triggers::add_orphans(&context, &queue);
            let reconciler = reconciler(since);
            move |certificate: ObjectKey| reconciler.clone().reconcile(certificate)
        };
        let repair = |since| {
            let reconciler = reconciler(since);
            move |repair: Repair| reconciler.clone().repair(repair)
        };
        let stand_in = |since| {
            let reconciler = Arc::new(new(&standby, since));
            standing_by.worker(move |repair| reconciler.clone().stand_in(repair))
        };
        let stop = || shutdown.clone();
        let routed = std::future::pending;
        let rotating = controller::run(
            &context,
            WORKER,
            context.is_target(),
            queue.clone(),
            router,
            rotate,
            stop(),
        );
        let repairing = controller::run(
            &context,
            REPAIRS,
            context.is_target(),
            repairs,
            routed(),
            repair,
            stop(),
        );
        let queue = standing_by.queue();
        let standing_by = controller::run(
            &standby,
            STANDBY,
            context.is_target(),
            queue,
            routed(),
            stand_in,
            stop(),
        );
        tokio::try_join!(rotating, repairing, standing_by).map(|_| ())
    })
}

// === impl Reconciler ===

impl CertificateReconciler {
    pub(super) async fn reconcile(
        self: Arc<Self>,
        key: ObjectKey,
    ) -> Result<Action, ServingCertificateError> {
        for _ in 0..ROUNDS {
            // Anew each time: a look takes seconds where an endpoint does not answer, and what is made for a
            // ServingCertificate that has gone meanwhile is collected as garbage, which brings us back to make it again.
            let Some(desired) = self.desired(&key)? else {
                self.forget(&key).await?;
                return Ok(Action::AwaitChange);
            };
            let timing = desired.timing(&self.timing);
            let known = self.rotations.known(&key);
            let mut gathered = match within(known, self.gather(&desired, &timing)).await? {
                Ok(gathered) => gathered,
                Err(obstacle) => {
                    self.report_obstacle(&desired, &obstacle).await?;
                    return Ok(Action::Requeue(self.obstacles.note(&key, obstacle.reason)));
                }
            };
            self.obstacles.forget(&key);
            let plan = rotation::plan(&gathered.observation, &timing);
            let trace = self.trace(&desired, &gathered.observation, &plan, &timing);
            let executed = self.execute(&desired, &mut gathered, &plan.steps, &timing);
            let done = within(trace.clone(), executed).await;
            match done {
                Ok(StepsOutcome::LookAgain) => continue,
                Ok(StepsOutcome::Awaited) => return Ok(Action::Requeue(timing.poll.unsigned_abs())),
                Ok(StepsOutcome::Settled) | Err(_) => {}
            }
            // What is listed a moment later would be said to be missing.
            if self.context.watches.are_listing(self.context.is_target()) {
                done?;
                return Ok(Action::Requeue(LISTING));
            }
            within(trace, self.report(&desired, &gathered.observation, &plan)).await?;
            done?;
            return Ok(Action::Requeue(plan.wake_up.unsigned_abs().max(BREATH)));
        }
        Ok(Action::Requeue(self.timing.poll.unsigned_abs()))
    }
}
