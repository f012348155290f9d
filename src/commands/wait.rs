//! Waiting until an object reaches the desired state.

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
    commands::cluster::explain_error,
    terminal::{Progress, ProgressFormat, WaitStatus},
};

/// The last state reported by the watch.
enum Latest {
    /// Unknown: the watch has just started, or failed.
    Unknown,
    /// The object does not exist.
    Absent,
    /// The object.
    Object(Value),
}

/// How often `judge` is called without news, since its answer may depend on time.
const ASK_AGAIN: Duration = Duration::from_millis(250);

/// Whether and how long a command waits, and its output.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct WaitArgs {
    /// Wait for completion.
    #[arg(long, default_value_t = true, action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true",
          require_equals = true, hide_possible_values = true, value_name = "BOOL", help_heading = "Waiting and output")]
    pub(super) wait: bool,

    /// Maximum time to wait.
    #[arg(
        long,
        default_value = "5m",
        value_name = "DURATION",
        help_heading = "Waiting and output"
    )]
    pub(super) timeout: GoDuration,

    /// Output format.
    #[arg(long, short, value_enum, default_value_t, help_heading = "Waiting and output")]
    pub(super) output: ProgressFormat,
}

/// The decision about an observed state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Judgement<T> {
    /// Keep waiting; this is the current step.
    Wait(WaitStatus),
    /// The wait is over.
    Done(T),
}

/// Watches an object of kind `K` until `judge` returns `Done`. `judge` gets the object (`None` if it does not
/// exist), and the time since the wait began.
///
/// # Errors
///
/// When that takes longer than `patience` (the error describes the last state), or the object may not be
/// watched.
pub(super) async fn wait_for_object<K: Resource<DynamicType = ()>, T>(
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
    let mut what = WaitStatus::default();
    loop {
        tokio::select! {
            version = versions.next() => match version {
                Some(Ok(Some(version))) => latest = Latest::Object(serde_json::to_value(version)?),
                Some(Ok(None)) => latest = Latest::Absent,
                Some(Err(error)) => {
                    if let Some(status) = refusal(&error) {
                        let (operation, object) = ("watch", key.to_string());
                        let status = Box::new(status.clone());
                        return Err(explain_error(RequestError::Refused { operation, object, status }));
                    }
                    // The last state may be outdated.
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
        if what != WaitStatus::default() {
            progress.wait_for(what.clone());
        }
        if started.elapsed() > patience.0.unsigned_abs() {
            let text = format!("timed out after {patience}: {what}");
            return Err(anyhow!("{}", OneLine(&text)));
        }
    }
}

/// Returns the API server's response if a retry cannot change it.
fn refusal(error: &watcher::Error) -> Option<&Status> {
    let (watcher::Error::InitialListFailed(error) | watcher::Error::WatchStartFailed(error)) = error else {
        return None;
    };
    match error {
        kube::Error::Api(status) if matches!(status.code, 401 | 403 | 404) => Some(status),
        _ => None,
    }
}

/// A condition of the current generation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Condition<'a> {
    pub(super) status: &'a str,
    pub(super) reason: &'a str,
    pub(super) message: &'a str,
}

/// Returns a condition, if the status is about the current generation.
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
