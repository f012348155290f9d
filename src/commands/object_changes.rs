//! Changes of objects that other clients also write.

use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use serde_json::Value;
use windlass_adoption::taken_over_fields;
use windlass_cluster::{Cluster, RequestError};
use windlass_object::{
    ObjectKey, json, names, object,
    patch::{applied_by, guarded, relabelled},
    text::OneLine,
};

use crate::{commands::cluster::explain_error, terminal::Progress};

/// How long a write is retried after conflicts, or denials of a guard that has not observed a change yet.
const PATIENCE: Duration = Duration::from_secs(15);

const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Maximum time for API servers to observe changed callers, and for clients to observe changed endpoints.
pub(super) const PROPAGATION_DELAY: Duration = Duration::from_secs(10);

/// Waits until `check` returns `None`; else it returns what to wait for.
///
/// # Errors
///
/// When that takes too long, or `check` fails.
pub(super) async fn wait_until(
    progress: &mut Progress,
    patience: Duration,
    mut check: impl AsyncFnMut() -> anyhow::Result<Option<String>>,
) -> anyhow::Result<()> {
    let started = Instant::now();
    while let Some(what) = check().await? {
        progress.wait_for(what.clone());
        if started.elapsed() > patience {
            let text = format!("timed out waiting for {what}; to go on, run the command again");
            bail!("{}", OneLine(&text));
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

/// Waits until all API servers have observed the last write.
pub(super) async fn wait_for_propagation(progress: &mut Progress, what: &str) {
    progress.wait_for(format!("API servers to observe {what}"));
    tokio::time::sleep(PROPAGATION_DELAY).await;
}

/// Applies `change` to an object in one write, if that changes it. Returns the resulting object, or `None` if
/// it does not exist.
///
/// # Errors
///
/// When the cluster rejects the write.
pub(super) async fn change(
    cluster: &Cluster,
    key: &ObjectKey,
    change: impl Fn(&Value) -> Value,
) -> Result<Option<Value>, RequestError> {
    let started = Instant::now();
    loop {
        let Some(live) = cluster.read(key).await? else {
            return Ok(None);
        };
        let changed = change(&live);
        if is_up_to_date(&live, &changed) {
            return Ok(Some(live));
        }
        match cluster.replace(&changed, names::COMMAND).await {
            Err(error) if is_transient(&error) && started.elapsed() < PATIENCE => {}
            written => return written.map(Some),
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Changes labels and annotations of an existing object; null removes one.
///
/// # Errors
///
/// As [`change`].
pub(super) async fn change_metadata(
    cluster: &Cluster,
    key: &ObjectKey,
    labels: &Value,
    annotations: &Value,
) -> anyhow::Result<()> {
    let started = Instant::now();
    loop {
        let Some(live) = cluster.read(key).await.map_err(explain_error)? else {
            return Ok(());
        };
        let patch = relabelled(&live, labels, annotations);
        // The first two arguments are kept for the guard.
        if has(&live, "labels", labels) && has(&live, "annotations", annotations) {
            return Ok(());
        }
        match cluster.patch(key, &patch, names::COMMAND).await {
            Err(error) if (error.is_invalid() || is_transient(&error)) && started.elapsed() < PATIENCE => {}
            written => return written.map(drop).map_err(explain_error),
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Makes Windlass the only field manager of an object, so that only the fields that it applies are kept.
///
/// # Errors
///
/// As [`change`].
pub(super) async fn take_ownership(cluster: &Cluster, key: &ObjectKey) -> anyhow::Result<()> {
    let started = Instant::now();
    loop {
        let Some(live) = cluster.read(key).await.map_err(explain_error)? else {
            return Ok(());
        };
        let is_ours = object::label(&live, names::BUNDLE_DEPLOYMENT).is_some();
        let Some(fields) = taken_over_fields(&live).filter(|_| !is_ours) else {
            return Ok(());
        };
        let version = &live["metadata"]["resourceVersion"];
        let patch = guarded(
            &[("/metadata/resourceVersion", version)],
            "/metadata/managedFields",
            &fields,
        );
        match cluster.patch(key, &patch, names::COMMAND).await {
            Err(error) if (error.is_invalid() || is_transient(&error)) && started.elapsed() < PATIENCE => {}
            written => return written.map(drop).map_err(explain_error),
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Deletes an object with this uid, its dependents first.
///
/// # Errors
///
/// When the cluster rejects the request.
pub(super) async fn delete(cluster: &Cluster, key: &ObjectKey, uid: Option<&str>) -> anyhow::Result<()> {
    match cluster.delete_after_dependents(key, uid).await {
        // Another object now has the same name.
        Err(error) if error.is_conflict() => Ok(()),
        Err(RequestError::UnknownKind { .. }) => Ok(()),
        deleted => deleted.map_err(explain_error),
    }
}

/// Creates an object as recorded.
///
/// # Errors
///
/// When the cluster rejects it.
pub(super) async fn create(cluster: &Cluster, recorded: &Value) -> anyhow::Result<()> {
    let Some(key) = ObjectKey::from_object(recorded) else {
        return Ok(());
    };
    let mut object = recorded.clone();
    json::fields(&mut object, &["metadata"]).shift_remove("uid");
    let started = Instant::now();
    loop {
        match cluster.create(&object, names::COMMAND).await {
            // The previous object is still being deleted.
            Err(error) if error.is_conflict() && started.elapsed() < PATIENCE => {}
            created => return created.map(drop).map_err(|error| with_key(&key, error)),
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Adds the name of the object to an error.
pub(super) fn with_key(key: &ObjectKey, error: RequestError) -> anyhow::Error {
    anyhow!("{key}: {}", explain_error(error))
}

fn is_transient(error: &RequestError) -> bool {
    error.is_conflict() || error.is_forbidden() || error.is_inconclusive()
}

fn has(live: &Value, field: &str, entries: &Value) -> bool {
    let known = &live["metadata"][field];
    entries.as_object().into_iter().flatten().all(|(name, value)| {
        let is_there = known.get(name).unwrap_or(&Value::Null);
        is_there == value
    })
}

/// Field managers do not matter, except whether Windlass is one.
fn is_up_to_date(live: &Value, changed: &Value) -> bool {
    let bare = |object: &Value| {
        let mut bare = object.clone();
        bare["metadata"]["managedFields"] = Value::Null;
        bare
    };
    let is_applied = |object: &Value| applied_by(object, names::INSTALL);
    object::is_terminating(live) || bare(live) == bare(changed) && is_applied(live) == is_applied(changed)
}
