//! Controller of ServingCertificates.

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
    error::ServingCertificateError, execute::StepsOutcome, history::Histories,
    obstacle_backoff::ObstacleBackoff, other_installs::OtherInstalls, probe_schedule::ProbeSchedule,
    reconciler::CertificateReconciler, repair::Repair, rotation_traces::RotationTraces,
    secrets::KnownSecrets, triggers,
};
use crate::{announced::Announced, ca_injectors, context::Context, controller, standby::StandbyRepairs};

/// Settings of this controller's worker.
const WORKER: worker::Settings = worker::Settings::new("serving-certificate", 8).with_slow_after(SLOW_AFTER);

/// Longest time of a reconciliation while every endpoint responds, even on a slow machine. An endpoint that
/// does not respond takes five seconds.
const SLOW_AFTER: Duration = Duration::from_secs(4);

const REPAIRS: worker::Settings = worker::Settings::new("target-repair", WritePace::MAX_LIMIT);

/// Settings of the worker for repairs in a standby process.
const STANDBY: worker::Settings = worker::Settings::new("standby-repair", WritePace::MAX_LIMIT);

/// Maximum number of plans in a row before other ServingCertificates are reconciled. A rotation takes a
/// handful.
const MAX_ROUNDS: usize = 16;

/// Shortest time until the same ServingCertificate is reconciled again without a change.
const MIN_PAUSE: Duration = Duration::from_millis(50);

/// Time until a ServingCertificate is reconciled again while its targets may still be listed.
const LISTING_RETRY: Duration = Duration::from_secs(1);

/// Runs the controller until `shutdown`. The lifetimes in `timing` are replaced by those of each
/// ServingCertificate. With `standby`, a process that is not the leader repairs targets.
///
/// # Errors
///
/// If a reconciliation panics.
pub fn run(
    context: Arc<Context>,
    standby: Arc<Context>,
    timing: Timing,
    shutdown: CancellationToken,
) -> BoxFuture<'static, Result<(), JoinError>> {
    // Boxed, so that this body is compiled once here instead of in every program that runs it.
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
            ca_injectors::update_running(context);
            CertificateReconciler {
                context: context.clone(),
                timing: timing.clone(),
                histories: Histories::default(),
                probe_schedule: ProbeSchedule::new(timing.poll.unsigned_abs()),
                obstacle_backoff: ObstacleBackoff::default(),
                secrets: KnownSecrets::default(),
                other_installs: OtherInstalls::default(),
                announced: Announced::default(),
                rotations: RotationTraces::default(),
                bundles: Mutex::default(),
                run: rand::random(),
                since,
            }
        };
        // Both workers start with the same leadership and share its state.
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
        let repair_in_standby = |since| {
            let reconciler = Arc::new(new(&standby, since));
            standing_by.worker(move |repair| reconciler.clone().repair_in_standby(repair))
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
            repair_in_standby,
            stop(),
        );
        tokio::try_join!(rotating, repairing, standing_by).map(|_| ())
    })
}

impl CertificateReconciler {
    pub(super) async fn reconcile(
        self: Arc<Self>,
        key: ObjectKey,
    ) -> Result<Action, ServingCertificateError> {
        for _ in 0..MAX_ROUNDS {
            // Read again in each round. A round takes seconds if an endpoint does not respond, and the
            // ServingCertificate may have been deleted. Objects created for a deleted owner are
            // garbage-collected, which would trigger the next round.
            let Some(desired) = self.desired(&key)? else {
                self.forget(&key).await?;
                return Ok(Action::AwaitChange);
            };
            let timing = desired.timing(&self.timing);
            let known = self.rotations.current(&key);
            let mut gathered = match within(known, self.gather(&desired, &timing)).await? {
                Ok(gathered) => gathered,
                Err(obstacle) => {
                    self.report_obstacle(&desired, &obstacle).await?;
                    return Ok(Action::Requeue(
                        self.obstacle_backoff.record(&key, obstacle.reason),
                    ));
                }
            };
            self.obstacle_backoff.forget(&key);
            let plan = rotation::plan(&gathered.observation, &timing);
            let trace = self.trace(&desired, &gathered.observation, &plan, &timing);
            let executed = self.execute(&desired, &mut gathered, &plan.steps, &timing);
            let done = within(trace.clone(), executed).await;
            match done {
                Ok(StepsOutcome::GatherAgain) => continue,
                Ok(StepsOutcome::Awaited) => return Ok(Action::Requeue(timing.poll.unsigned_abs())),
                Ok(StepsOutcome::Settled) | Err(_) => {}
            }
            // Targets that are listed a moment later would be reported as missing.
            if self.context.watches.are_listing(self.context.is_target()) {
                done?;
                return Ok(Action::Requeue(LISTING_RETRY));
            }
            within(trace, self.report(&desired, &gathered.observation, &plan)).await?;
            done?;
            return Ok(Action::Requeue(plan.wake_up.unsigned_abs().max(MIN_PAUSE)));
        }
        Ok(Action::Requeue(self.timing.poll.unsigned_abs()))
    }
}
