//! Waiting for one object to become what is desired.

use std::{
    pin::pin,
    time::{Duration, Instant},
};

use anyhow::{anyhow, bail};
use clap::ArgAction;
use futures::StreamExt;
use kube::{
    Api, Resource,
    api::{ApiResource, DynamicObject},
    core::Status,
    runtime::{WatchStreamExt, watcher},
};
use serde_json::Value;
use windlass_cluster::{Cluster, RequestError, telemetry::chain};
use windlass_object::{GoDuration, ObjectKey, object, text::OneLine};

use crate::{
    commands::cluster::explained,
    terminal::{Progress, ProgressFormat, Waiting},
};

/// What the watch has shown last.
enum Latest {
    /// Nothing yet, or nothing that still holds for sure.
    Unknown,
    /// That there is no such object.
    Absent,
    /// The object.
    Object(Value),
}

/// How often a judge is asked that has seen nothing new: time alone may decide.
const ASK_AGAIN: Duration = Duration::from_millis(250);

/// Whether a command waits for completion, and how long.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct WaitArgs {
    /// Wait for completion.
    #[arg(long, default_value_t = true, action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true",
          require_equals = true)]
    pub(super) wait: bool,

    /// Maximum time to wait.
    #[arg(long, default_value = "5m", value_name = "DURATION")]
    pub(super) timeout: GoDuration,

    /// Output format.
    #[arg(long, short, value_enum, default_value_t)]
    pub(super) output: ProgressFormat,
}

/// What is to be done about an object as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Judgement<T> {
    /// Go on waiting; for what.
    Wait(Waiting),
    /// Waiting has an end.
    Done(T),
}

/// Watches the object `key`, one of ours of kind `K`, until `judge` is done. It is shown the object as it is (`None` when there is none), and how
/// long it has been waited for.
///
/// # Errors
///
/// When that takes longer than `patience` (the error says how things are), or when the object may not be watched.
pub(super) async fn follow<K: Resource<DynamicType = ()>, T>(
    cluster: &Cluster,
    key: &ObjectKey,
    patience: GoDuration,
    progress: &mut Progress,
    mut judge: impl FnMut(Option<&Value>, Duration) -> anyhow::Result<Judgement<T>>,
) -> anyhow::Result<T> {
    let (client, resource) = (cluster.client().clone(), ApiResource::erase::<K>(&()));
    let api: Api<DynamicObject> = match &key.namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &resource),
        None => Api::all_with(client, &resource),
    };
    let mut versions = pin!(watcher::watch_object(api, &key.name).default_backoff());
    let started = Instant::now();
    let mut again = tokio::time::interval(ASK_AGAIN);
    let mut latest = Latest::Unknown;
    let mut what = Waiting::default();
    loop {
        tokio::select! {
            version = versions.next() => match version {
                Some(Ok(Some(version))) => latest = Latest::Object(serde_json::to_value(version)?),
                Some(Ok(None)) => latest = Latest::Absent,
                Some(Err(error)) => {
                    if let Some(status) = refusal(&error) {
                        let (operation, object) = ("watch", key.to_string());
                        let status = Box::new(status.clone());
                        return Err(explained(RequestError::Refused { operation, object, status }));
                    }
                    // Whether what was seen last still holds is not known.
                    latest = Latest::Unknown;
                    what = format!("the API server does not respond: {}", chain(&error)).into();
                }
                None => bail!("the watch on {key} ended"),
            },
            _ = again.tick() => {}
        }
        let judgement = match &latest {
            Latest::Unknown => None,
            Latest::Absent => Some(judge(None, started.elapsed())?),
            Latest::Object(object) => Some(judge(Some(object), started.elapsed())?),
        };
        match judgement {
            Some(Judgement::Done(outcome)) => return Ok(outcome),
            Some(Judgement::Wait(for_what)) => what = for_what,
            None => {}
        }
        if what != Waiting::default() {
            progress.wait_for(what.clone());
        }
        if started.elapsed() > patience.0.unsigned_abs() {
            let text = format!("timed out after {patience}: {what}");
            return Err(anyhow!("{}", OneLine(&text)));
        }
    }
}

/// What the API server answered, if it would answer the same when asked again.
fn refusal(error: &watcher::Error) -> Option<&Status> {
    let (watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error)) = error else {
        return None;
    };
    match error {
        kube::Error::Api(status) if matches!(status.code, 401 | 403 | 404) => Some(status),
        _ => None,
    }
}

/// A condition that speaks of the present generation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Condition<'a> {
    /// `True`, `False` or `Unknown`.
    pub(super) status: &'a str,
    /// One word.
    pub(super) reason: &'a str,
    /// A sentence.
    pub(super) message: &'a str,
}

/// The condition of a type, if it speaks of the object as it is now.
pub(super) fn condition<'a>(object: &'a Value, condition_type: &str) -> Option<Condition<'a>> {
    let generation = &object["metadata"]["generation"];
    if object["status"]["observedGeneration"] != *generation {
        return None;
    }
    let found = object::condition(object, condition_type)?;
    let text = |pointer| object::text(found, pointer).unwrap_or_default();
    Some(Condition {
        status: text("/status"),
        reason: text("/reason"),
        message: text("/message"),
    })
}
