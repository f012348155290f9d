//! The controller.

use std::sync::Arc;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::{sync::Semaphore, task::JoinError};
use tokio_util::sync::CancellationToken;
use windlass_cluster::worker::{self, Queue};
use windlass_object::ObjectKey;

use super::{reconcile::ExtensionConfigReconciler, triggers};
use crate::{context::Context, controller, reporting::Announced};

/// How the worker of this controller works.
const WORKER: worker::Settings = worker::Settings::new("extension-config", 64);

/// How many servers are asked at the same time that have failed when they were asked last: dead ones are in nobody else's way.
const DOUBTFUL: usize = 32;

/// Runs the controller until `shutdown`.
///
/// # Errors
///
/// When a reconciliation panicked.
pub(crate) fn run(
    context: Arc<Context>,
    shutdown: CancellationToken,
) -> BoxFuture<'static, Result<(), JoinError>> {
    // Boxed: the body is compiled here once, not again in every program that runs it.
    Box::pin(async move {
        triggers::watch_everything(&context);
        let queue = Arc::new(Queue::new());
        let router = triggers::enqueue(context.clone(), queue.clone());
        let begin = |_| {
            let reconciler = Arc::new(ExtensionConfigReconciler {
                context: context.clone(),
                attempts: Mutex::default(),
                doubtful: Semaphore::new(DOUBTFUL),
                announced: Announced::default(),
            });
            move |config: ObjectKey| reconciler.clone().reconcile(config)
        };
        controller::run(
            &context,
            WORKER,
            context.is_target(),
            queue,
            router,
            begin,
            shutdown,
        )
        .await
    })
}
