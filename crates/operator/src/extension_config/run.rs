//! Controller of ExtensionConfigs.

use std::sync::Arc;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::{sync::Semaphore, task::JoinError};
use tokio_util::sync::CancellationToken;
use windlass_cluster::worker::{self, Queue};
use windlass_object::ObjectKey;

use super::{reconcile::ExtensionConfigReconciler, triggers};
use crate::{announced::Announced, context::Context, controller};

/// Settings of this controller's worker.
const WORKER: worker::Settings = worker::Settings::new("extension-config", 64);

/// Number of concurrent discoveries of servers that failed last time, so that they do not delay others.
const DOUBTFUL: usize = 32;

/// Runs the controller until `shutdown`.
///
/// # Errors
///
/// If a reconciliation panics.
pub(crate) fn run(
    context: Arc<Context>,
    shutdown: CancellationToken,
) -> BoxFuture<'static, Result<(), JoinError>> {
    // Boxed, so that this body is compiled once here instead of in every program that runs it.
    Box::pin(async move {
        triggers::watch_everything(&context);
        let queue = Arc::new(Queue::new());
        let router = triggers::enqueue(context.clone(), queue.clone());
        let begin = |_| {
            let reconciler = Arc::new(ExtensionConfigReconciler {
                context: context.clone(),
                attempts: Mutex::default(),
                failed_servers: Semaphore::new(DOUBTFUL),
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
