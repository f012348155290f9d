//! Controller of InjectionTargets.

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

use super::status::{self, WatchState};
use crate::{announced::merge_patch, context::Context, controller, injection::RECONCILE_DELAY};

/// Why a reconciliation failed and is retried.
#[derive(Debug, Error)]
enum ReportInjectionTargetError {
    /// A request failed.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The InjectionTarget or its status cannot be converted from or to JSON.
    #[error("cannot encode the status of an InjectionTarget")]
    Encode(#[from] serde_json::Error),
}

/// Settings of this controller's worker.
const WORKER: worker::Settings = worker::Settings::new("injection-target", 2);

/// Owner name of the watches for added kinds.
const WATCHER: &str = "injection-target";

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
        context.watches.start(Watch::all(kinds::INJECTION_TARGET));
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

/// Forever watches the added kinds, and adds the InjectionTargets that a change affects to the queue.
async fn enqueue(context: Arc<Context>, queue: Arc<Queue<ObjectKey>>) {
    let mut changes = context.index.subscribe();
    let mut lists = context.index.progress();
    let enqueue_all = || {
        watch_added_kinds(&context);
        for (key, _) in context.index.indexed(&kinds::INJECTION_TARGET) {
            queue.add(key);
        }
    };
    enqueue_all();
    loop {
        let change = tokio::select! {
            change = changes.recv() => change,
            // The index lives as long as this function, so the sender cannot have been dropped.
            _ = lists.changed() => {
                enqueue_all();
                continue;
            }
        };
        match change {
            // If an InjectionTarget is deleted, another one for the same kind may become valid.
            Ok(change) if Kind::from_key(&change.key) == kinds::INJECTION_TARGET => {
                if has_changed_outside_status(&change) {
                    enqueue_all();
                }
            }
            Ok(change) => {
                let kind = Kind::from_key(&change.key);
                let (group, _) = kind.group_version();
                let kinds = context.index.target_kinds();
                if kinds.added().iter().any(|added| added.is(group, &kind.kind)) {
                    for (key, _) in context.index.indexed(&kinds::INJECTION_TARGET) {
                        queue.add_after(key, RECONCILE_DELAY);
                    }
                }
            }
            Err(RecvError::Lagged(_)) => enqueue_all(),
            Err(RecvError::Closed) => return,
        }
    }
}

/// Reports whether an InjectionTarget changed outside its status.
fn has_changed_outside_status(change: &Change) -> bool {
    change.differs_in(&["/spec", "/metadata/uid"])
}

fn watch_added_kinds(context: &Context) {
    let kinds = context.index.target_kinds();
    let watches = kinds.added().iter().flat_map(Watch::for_target);
    context.watches.set_wanted(WATCHER, watches.collect());
}

async fn reconcile(context: Arc<Context>, key: ObjectKey) -> Result<Action, ReportInjectionTargetError> {
    let Some(object) = context.index.find(&key) else {
        return Ok(Action::AwaitChange);
    };
    let all = context.index.objects(&kinds::INJECTION_TARGET);
    let added = injection_targets::added_kind(&object, &all);
    let listed = added.as_ref().ok().map(|kind| watch_state(&context, kind));
    let target: InjectionTarget = match serde_json::from_value((*object).clone()) {
        Ok(target) => target,
        // The API server validates the schema, but an older schema may have allowed more.
        Err(error) => {
            context
                .events
                .warn(&object, "Watch", "Invalid", &error.to_string());
            return Ok(Action::AwaitChange);
        }
    };
    let known = target.status.clone().unwrap_or_default();
    let next = status::next_status(&target, &added, listed, &context.namespace, context.clock.now());
    if next == known {
        return Ok(Action::AwaitChange);
    }
    let patch = merge_patch(&known, &next)?;
    match context.cluster.patch_status(&key, &patch, names::STATUS).await {
        Ok(_) => Ok(Action::AwaitChange),
        // The InjectionTarget was deleted in the meantime.
        Err(error) if error.is_not_found() => Ok(Action::AwaitChange),
        Err(error) => Err(error.into()),
    }
}

/// Returns the state of the watch for an added kind.
fn watch_state(context: &Context, kind: &TargetKind) -> WatchState {
    let watch = Watch::for_target(kind).next();
    let Some(watch) = watch else {
        return WatchState::Pending;
    };
    if context.index.is_absent(&watch) {
        return WatchState::NotServed;
    }
    if context.index.is_complete(&watch) {
        let objects = context.index.indexed(&watch.kind);
        let asking = objects
            .values()
            .filter(|target| target.ca_sources().next().is_some());
        return WatchState::Listed(asking.count());
    }
    let unlisted = context.watches.unlisted_watches();
    let unlisted = unlisted.into_iter().find(|unlisted| unlisted.watch == watch);
    match unlisted.and_then(|unlisted| unlisted.problem) {
        Some(problem) => WatchState::Refused(problem),
        None => WatchState::Pending,
    }
}
