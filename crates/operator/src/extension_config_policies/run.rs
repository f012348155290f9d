//! Controller of the policies for ExtensionConfigs.

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
    binding::{BINDINGS, definition_key},
    reconcile::PolicySwitch,
};
use crate::{announced::Announced, context::Context, controller};

/// Settings of this controller's worker.
const WORKER: worker::Settings = worker::Settings::new("extension-config-policies", 1);

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
        context
            .watches
            .start(Watch::all(kinds::CUSTOM_RESOURCE_DEFINITION));
        for policy in &BINDINGS {
            context.watches.start(policy.watch());
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

/// Forever adds the bindings that a change affects to the queue.
async fn enqueue(context: Arc<Context>, queue: Arc<Queue<ObjectKey>>) {
    let mut changes = context.index.subscribe();
    let look_at_all = || BINDINGS.iter().for_each(|policy| queue.add(policy.key()));
    look_at_all();
    loop {
        match changes.recv().await {
            Ok(change) if change.key == definition_key() => look_at_all(),
            Ok(change) => {
                let concerned = BINDINGS.iter().filter(|policy| policy.is_affected_by(&change));
                concerned.for_each(|policy| queue.add(policy.key()));
            }
            Err(RecvError::Lagged(_)) => look_at_all(),
            Err(RecvError::Closed) => return,
        }
    }
}
