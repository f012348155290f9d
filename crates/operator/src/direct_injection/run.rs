//! Controllers of direct injection and of CA sources.

use std::sync::Arc;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use windlass_cluster::{
    WritePace,
    worker::{self, Queue},
};
use windlass_object::ObjectKey;
use windlass_trust::rotation::Timing;

use super::{
    ca_source::CaSourceReconciler,
    injection_conflicts::InjectionConflicts,
    observed_sources::ObservedSources,
    reconcile::DirectInjector,
    requests::InjectionRequests,
    triggers::{self, Queues},
    withdrawal::Withdrawals,
};
use crate::{announced::Announced, ca_injectors, context::Context, controller, standby::StandbyRepairs};

/// Settings of the worker for targets.
const WORKER: worker::Settings = worker::Settings::new("direct-injection", WritePace::MAX_LIMIT);

const SOURCES: worker::Settings = worker::Settings::new("ca-source", 8);

/// Settings of the worker for repairs in a standby process.
const STANDBY: worker::Settings = worker::Settings::new("direct-standby-repair", WritePace::MAX_LIMIT);

/// Runs the controllers until `shutdown`. Uses only the pace of repairs from `timing`. With `standby`, a
/// process that is not the leader repairs targets.
///
/// # Errors
///
/// If a reconciliation panics.
pub(crate) fn run(
    context: Arc<Context>,
    standby: Arc<Context>,
    timing: Timing,
    shutdown: CancellationToken,
) -> BoxFuture<'static, Result<(), JoinError>> {
    // Boxed, so that this body is compiled once here instead of in every program that runs it.
    Box::pin(async move {
        triggers::watch_everything(&context);
        let queue = Arc::new(Queue::new());
        let sources = Arc::new(Queue::new());
        let standing_by = StandbyRepairs::new(context.leadership.clone());
        let requests = Arc::new(Mutex::new(InjectionRequests::new(&context.namespace)));
        let queues = Queues {
            targets: queue.clone(),
            sources: sources.clone(),
            standby: standing_by.clone(),
        };
        let router = triggers::enqueue(context.clone(), queues, requests.clone());
        let new = |context: &Arc<Context>, since, sources| {
            Arc::new(DirectInjector {
                context: context.clone(),
                timing: timing.clone(),
                conflicts: InjectionConflicts::default(),
                announced: Announced::default(),
                sources,
                withdrawals: Withdrawals::default(),
                since,
            })
        };
        let known = Arc::new(ObservedSources::default());
        let inject = |since| {
            ca_injectors::update_running(&context);
            let injector = new(&context, since, known.clone());
            move |target: ObjectKey| injector.clone().reconcile(target)
        };
        let reconcile_sources = |_| {
            let source_reconciler = Arc::new(CaSourceReconciler {
                context: context.clone(),
                timing: timing.clone(),
                sources: known.clone(),
                requests,
                targets: queue.clone(),
                last_states: Mutex::default(),
            });
            move |source: ObjectKey| source_reconciler.clone().reconcile(source)
        };
        let repair_in_standby = |since| {
            ca_injectors::update_running(&standby);
            let injector = new(&standby, since, Arc::default());
            standing_by.worker(move |target| injector.clone().repair_in_standby(target))
        };
        let stop = || shutdown.clone();
        let injecting = controller::run(
            &context,
            WORKER,
            context.is_target(),
            queue.clone(),
            router,
            inject,
            stop(),
        );
        let reconciling_sources = controller::run(
            &context,
            SOURCES,
            context.is_target(),
            sources,
            std::future::pending(),
            reconcile_sources,
            stop(),
        );
        let (repairs, routed) = (standing_by.queue(), std::future::pending());
        let repairing = controller::run(
            &standby,
            STANDBY,
            context.is_target(),
            repairs,
            routed,
            repair_in_standby,
            stop(),
        );
        tokio::try_join!(injecting, reconciling_sources, repairing).map(|_| ())
    })
}
