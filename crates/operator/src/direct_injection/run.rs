//! The controller.

use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use windlass_cluster::worker::{self, Queue};
use windlass_object::ObjectKey;
use windlass_trust::rotation::Timing;

use super::{contests::Contests, reconcile::DirectInjector, triggers};
use crate::{context::Context, controller, injection::TARGET_KINDS, reporting::Announced};

/// How the worker of this controller works.
const WORKER: worker::Settings = worker::Settings::new("direct-injection", 2);

/// Runs the controller until `shutdown`. Of `timing`, the pace of repairs counts.
///
/// # Errors
///
/// When a reconciliation panicked.
pub(crate) fn run(
    context: Arc<Context>,
    timing: Timing,
    shutdown: CancellationToken,
) -> BoxFuture<'static, Result<(), JoinError>> {
    // Boxed: the body is compiled here once, not again in every program that runs it.
    Box::pin(async move {
        triggers::watch_everything(&context);
        let queue = Arc::new(Queue::new());
        let router = triggers::enqueue(context.clone(), queue.clone());
        let begin = |since| {
            let injector = Arc::new(DirectInjector {
                context: context.clone(),
                timing,
                contests: Contests::default(),
                announced: Announced::default(),
                since,
            });
            move |target: ObjectKey| injector.clone().reconcile(target)
        };
        controller::run(&context, WORKER, &TARGET_KINDS, queue, router, begin, shutdown).await
    })
}
