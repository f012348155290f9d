//! The controller.

use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::{sync::broadcast::error::RecvError, task::JoinError};
use tokio_util::sync::CancellationToken;
use windlass_cluster::{
    kinds,
    watch::Watch,
    worker::{self, Queue},
};
use windlass_object::ObjectKey;

use super::{
    binding::{BINDINGS, definition},
    reconcile::PolicySwitch,
};
use crate::{context::Context, controller, reporting::Announced};

/// How the worker of this controller works.
const WORKER: worker::Settings = worker::Settings::new("extension-config-policies", 1);

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
        context
            .watches
            .want(Watch::all(kinds::CUSTOM_RESOURCE_DEFINITION));
        for policy in &BINDINGS {
            context.watches.want(policy.watch());
        }
        let queue = Arc::new(Queue::new());
        let router = enqueue(context.clone(), queue.clone());
        let begin = |_| {
            let switch = Arc::new(PolicySwitch {
                context: context.clone(),
                announced: Announced::default(),
            });
            move |binding: ObjectKey| switch.clone().reconcile(binding)
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

/// Puts every binding into the queue that a change concerns, for ever.
async fn enqueue(context: Arc<Context>, queue: Arc<Queue<ObjectKey>>) {
    let mut changes = context.index.subscribe();
    let look_at_all = || BINDINGS.iter().for_each(|policy| queue.add(policy.key()));
    look_at_all();
    loop {
        match changes.recv().await {
            Ok(change) if change.key == definition() => look_at_all(),
            Ok(change) => {
                let concerned = BINDINGS.iter().filter(|policy| policy.is_concerned(&change));
                concerned.for_each(|policy| queue.add(policy.key()));
            }
            Err(RecvError::Lagged(_)) => look_at_all(),
            Err(RecvError::Closed) => return,
        }
    }
}
