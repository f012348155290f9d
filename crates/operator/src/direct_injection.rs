//! Targets that ask for the `ca.crt` of a Secret that Windlass does not issue.
//!
//! The Secrets of ServingCertificates are not looked at here: there, what a target carries decides when a CA may sign.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};

use futures::future::BoxFuture;
use serde_json::Value;
use thiserror::Error;
use tokio::{sync::broadcast::error::RecvError, task::JoinError};
use tokio_util::sync::CancellationToken;
use windlass_cluster::{
    Index, RequestError, kinds,
    watch::{Selector, Watch},
    worker::{self, Action, Queue},
};
use windlass_object::{ObjectKey, names, object, secret_keys::CA_CERTIFICATES};
use windlass_trust::{
    injection::{CaSource, Injection},
    trust_bundle::TrustBundle,
};

use super::injection::{InjectionOutcome, TARGET_KINDS, inject};
use crate::{context::Context, controller};

/// Why a reconciliation has to be tried again.
#[derive(Debug, Error)]
#[error(transparent)]
struct ReconcileError(#[from] RequestError);

/// How the worker of this controller works.
const WORKER: worker::Settings = worker::Settings::new("direct-injection", 2);

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
        for kind in TARGET_KINDS.iter().cloned() {
            context.watches.want(Watch::all(kind));
        }
        let queue = Arc::new(Queue::new());
        let router = enqueue(context.clone(), queue.clone());
        let begin = |_| |secret: ObjectKey| reconcile(context.clone(), secret);
        controller::run(&context, WORKER, queue, router, begin, shutdown).await
    })
}

async fn reconcile(context: Arc<Context>, key: ObjectKey) -> Result<Action, ReconcileError> {
    let Some(secret) = context.index.find(&key) else {
        return Ok(Action::AwaitChange);
    };
    let trust = read_trust(&context, &secret, &key);
    if trust.is_ok() && object::label(&secret, names::SERVING_CERTIFICATE).is_some() {
        return Ok(Action::AwaitChange);
    }
    for target in requesting_targets(&context.index, &key) {
        let problem = match &trust {
            Ok(trust) => {
                let injection = Injection { trust, names: None };
                match inject(&context.cluster, &target, &injection).await? {
                    InjectionOutcome::Refused(message) => message,
                    InjectionOutcome::Unchanged
                    | InjectionOutcome::Written
                    | InjectionOutcome::Overtaken
                    | InjectionOutcome::Gone => {
                        continue;
                    }
                }
            }
            Err(problem) => problem.clone(),
        };
        context
            .events
            .warn(&target, "Inject", "NoTrustBundle", &problem)
            .await;
    }
    Ok(Action::AwaitChange)
}

/// The trust bundle of a Secret that lets targets have it.
fn read_trust(context: &Context, secret: &Value, key: &ObjectKey) -> Result<TrustBundle, String> {
    if object::annotation(secret, names::ALLOW_DIRECT_INJECTION) != Some("true") {
        return Err(format!(
            "{key} does not have the annotation {}: \"true\"",
            names::ALLOW_DIRECT_INJECTION
        ));
    }
    let pem =
        object::data(secret, CA_CERTIFICATES).ok_or_else(|| format!("{key} has no {CA_CERTIFICATES}"))?;
    let (bundle, _) =
        TrustBundle::from_foreign_pem(&pem).map_err(|error| format!("{key}: {CA_CERTIFICATES}: {error}"))?;
    bundle
        .without_expired(context.clock.now())
        .map_err(|error| format!("{key}: {CA_CERTIFICATES}: {error}"))
}

fn requesting_targets(index: &Index, secret: &ObjectKey) -> Vec<Arc<Value>> {
    let targets = TARGET_KINDS.iter().flat_map(|kind| index.objects(kind));
    targets
        .filter(|target| requested_secret(target).as_ref() == Some(secret))
        .collect()
}

/// The Secret that a target asks for.
fn requested_secret(target: &Value) -> Option<ObjectKey> {
    match CaSource::of(target) {
        Ok(Some(CaSource::Secret { namespace, name })) => Some(kinds::SECRET.object(Some(&namespace), &name)),
        _ => None,
    }
}

/// Puts every Secret into the queue that a change concerns, for ever, and watches exactly those that are asked for.
async fn enqueue(context: Arc<Context>, queue: Arc<Queue<ObjectKey>>) {
    let mut changes = context.index.subscribe();
    watch_asked(&context, &queue);
    loop {
        match changes.recv().await {
            Ok(change) if change.key.kind == *kinds::SECRET.kind => {
                if !requesting_targets(&context.index, &change.key).is_empty() {
                    queue.add(change.key);
                }
            }
            Ok(change) => {
                if change.versions().any(|target| requested_secret(target).is_some()) {
                    watch_asked(&context, &queue);
                }
            }
            Err(RecvError::Lagged(_)) => watch_asked(&context, &queue),
            Err(RecvError::Closed) => return,
        }
    }
}

fn watch_asked(context: &Context, queue: &Queue<ObjectKey>) {
    let targets = TARGET_KINDS.iter().flat_map(|kind| context.index.objects(kind));
    let secrets: BTreeSet<_> = targets.filter_map(|target| requested_secret(&target)).collect();
    let desired: HashSet<_> = secrets
        .iter()
        .map(|secret| {
            Watch::all(kinds::SECRET)
                .within(secret.namespace.as_deref().unwrap_or_default())
                .selected(Selector::Name(secret.name.clone()))
        })
        .collect();
    context.watches.want_only(desired, |watch| {
        watch.kind == kinds::SECRET && matches!(watch.selector, Selector::Name(_))
    });
    for secret in secrets {
        queue.add(secret);
    }
}
