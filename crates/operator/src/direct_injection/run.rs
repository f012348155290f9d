//! The controller.

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
    contests::Contests,
    keeper::SourceKeeper,
    observed_sources::ObservedSources,
    reconcile::DirectInjector,
    requests::InjectionRequests,
    triggers::{self, Queues},
    withdrawal::Withdrawals,
};
use crate::{ca_injectors, context::Context, controller, reporting::Announced, standby::StandbyRepairs};

/// How the worker of this controller works.
const WORKER: worker::Settings = worker::Settings::new("direct-injection", WritePace::MOST);

/// How the worker that keeps records of sources works.
const KEEPER: worker::Settings = worker::Settings::new("ca-source", 8);

/// How the worker of repairs works in a process that stands by.
const STANDBY: worker::Settings = worker::Settings::new("direct-standby-repair", WritePace::MOST);

/// Runs the controller until `shutdown`. Of `timing`, the pace of repairs counts. `standby` writes although this process does not
/// lead.
///
/// # Errors
///
/// When a reconciliation panicked.
pub(crate) fn run(
    context: Arc<Context>,
    standby: Arc<Context>,
    timing: Timing,
    shutdown: CancellationToken,
) -> BoxFuture<'static, Result<(), JoinError>> {
    // Boxed: the body is compiled here once, not again in every program that runs it.
    Box::pin(async move {
        triggers::watch_everything(&context);
        let queue = Arc::new(Queue::new());
        let sources = Arc::new(Queue::new());
        let standing_by = StandbyRepairs::new(context.leadership.clone());
        let requests = Arc::new(Mutex::new(InjectionRequests::none(&context.namespace)));
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
                contests: Contests::default(),
                announced: Announced::default(),
                sources,
                withdrawals: Withdrawals::default(),
                since,
            })
        };
        let known = Arc::new(ObservedSources::default());
        let inject = |since| {
            ca_injectors::look(&context);
            let injector = new(&context, since, known.clone());
            move |target: ObjectKey| injector.clone().reconcile(target)
        };
        let keep = |_| {
            let keeper = Arc::new(SourceKeeper {
                context: context.clone(),
                timing: timing.clone(),
                sources: known.clone(),
                requests,
                targets: queue.clone(),
                told: Mutex::default(),
            });
            move |source: ObjectKey| keeper.clone().reconcile(source)
        };
        let stand_in = |since| {
            ca_injectors::look(&standby);
            let injector = new(&standby, since, Arc::default());
            standing_by.worker(move |target| injector.clone().stand_in(target))
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
        let keeping = controller::run(
            &context,
            KEEPER,
            context.is_target(),
            sources,
            std::future::pending(),
            keep,
            stop(),
        );
        let (repairs, routed) = (standing_by.queue(), std::future::pending());
        let repairing = controller::run(
            &standby,
            STANDBY,
            context.is_target(),
            repairs,
            routed,
            stand_in,
            stop(),
        );
        tokio::try_join!(injecting, keeping, repairing).map(|_| ())
    })
}
