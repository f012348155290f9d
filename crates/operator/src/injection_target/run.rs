//! The controller.

use std::sync::Arc;

use futures::future::BoxFuture;
use thiserror::Error;
use tokio::{sync::broadcast::error::RecvError, task::JoinError};
use tokio_util::sync::CancellationToken;
use windlass_api::InjectionTarget;
use windlass_cluster::{
    Change, Kind, RequestError, injection_targets, kinds,
    watch::Watch,
    worker::{self, Action, Queue},
};
use windlass_object::{ObjectKey, names};
use windlass_trust::injection::TargetKind;

use super::status::{self, Listed};
use crate::{context::Context, controller, injection::REPAIRED, reporting::merge_patch};

/// Why a reconciliation has to be tried again.
#[derive(Debug, Error)]
enum ReportInjectionTargetError {
    /// A request failed.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// It cannot be read, or its status not be written, as JSON.
    #[error("cannot encode the status of an InjectionTarget")]
    Encode(#[from] serde_json::Error),
}

/// How the worker of this controller works.
const WORKER: worker::Settings = worker::Settings::new("injection-target", 2);

/// Whose watches those of added kinds are.
const WATCHER: &str = "injection-target";

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
        context.watches.want(Watch::all(kinds::INJECTION_TARGET));
        let queue = Arc::new(Queue::new());
        let router = enqueue(context.clone(), queue.clone());
        let begin = |_| |target: ObjectKey| reconcile(context.clone(), target);
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

/// Watches the kinds that are added, and puts every InjectionTarget into the queue that a change concerns, for ever.
async fn enqueue(context: Arc<Context>, queue: Arc<Queue<ObjectKey>>) {
    let mut changes = context.index.subscribe();
    let mut lists = context.index.progress();
    let look_at_all = || {
        watch_added(&context);
        for (key, _) in context.index.indexed(&kinds::INJECTION_TARGET) {
            queue.add(key);
        }
    };
    look_at_all();
    loop {
        let change = tokio::select! {
            change = changes.recv() => change,
            // The index lives as long as this, so it cannot have been dropped.
            _ = lists.changed() => {
                look_at_all();
                continue;
            }
        };
        match change {
            // What one adds, another may add when that has gone.
            Ok(change) if Kind::from_key(&change.key) == kinds::INJECTION_TARGET => {
                if asks_for_something_else(&change) {
                    look_at_all();
                }
            }
            Ok(change) => {
                let kind = Kind::from_key(&change.key);
                let (group, _) = kind.group_version();
                let kinds = context.index.target_kinds();
                if kinds.added().iter().any(|added| added.is(group, &kind.kind)) {
                    for (key, _) in context.index.indexed(&kinds::INJECTION_TARGET) {
                        queue.add_after(key, REPAIRED);
                    }
                }
            }
            Err(RecvError::Lagged(_)) => look_at_all(),
            Err(RecvError::Closed) => return,
        }
    }
}

/// Whether more of an InjectionTarget changed than its status.
fn asks_for_something_else(change: &Change) -> bool {
    change.differs_in(&["/spec", "/metadata/uid"])
}

fn watch_added(context: &Context) {
    let kinds = context.index.target_kinds();
    let watches = kinds.added().iter().flat_map(Watch::for_target);
    context.watches.want_only(WATCHER, watches.collect());
}

async fn reconcile(context: Arc<Context>, key: ObjectKey) -> Result<Action, ReportInjectionTargetError> {
    let Some(object) = context.index.find(&key) else {
        return Ok(Action::AwaitChange);
    };
    let all = context.index.objects(&kinds::INJECTION_TARGET);
    let added = injection_targets::added(&object, &all);
    let listed = added.as_ref().ok().map(|kind| look(&context, kind));
    let target: InjectionTarget = match serde_json::from_value((*object).clone()) {
        Ok(target) => target,
        // The API server keeps to the schema, and an older one may have let more through.
        Err(error) => {
            context
                .events
                .warn(&object, "Watch", "Invalid", &error.to_string());
            return Ok(Action::AwaitChange);
        }
    };
    let known = target.status.clone().unwrap_or_default();
    let next = status::next(&target, &added, listed, &context.namespace, context.clock.now());
    if next == known {
        return Ok(Action::AwaitChange);
    }
    let patch = merge_patch(&known, &next)?;
    match context.cluster.patch_status(&key, &patch, names::STATUS).await {
        Ok(_) => Ok(Action::AwaitChange),
        // It was deleted meanwhile.
        Err(error) if error.is_not_found() => Ok(Action::AwaitChange),
        Err(error) => Err(error.into()),
    }
}

/// What is seen of the objects of a kind that was added.
fn look(context: &Context, kind: &TargetKind) -> Listed {
    let watch = Watch::for_target(kind).next();
    let Some(watch) = watch else {
        return Listed::Pending;
    };
    if context.index.is_absent(&watch) {
        return Listed::NotServed;
    }
    if context.index.is_complete(&watch) {
        let objects = context.index.indexed(&watch.kind);
        let asking = objects
            .values()
            .filter(|target| target.ca_sources().next().is_some());
        return Listed::Seen(asking.count());
    }
    let unlisted = context.watches.unlisted_watches();
    let unlisted = unlisted.into_iter().find(|unlisted| unlisted.watch == watch);
    match unlisted.and_then(|unlisted| unlisted.problem) {
        Some(problem) => Listed::Refused(problem),
        None => Listed::Pending,
    }
}
