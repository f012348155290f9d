//! Changing objects of others as they are at the moment.

use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use serde_json::Value;
use windlass_adoption::handed_over;
use windlass_cluster::{Cluster, RequestError};
use windlass_object::{
    ObjectKey, json, names, object,
    patch::{applied_by, guarded, relabelled},
    text::OneLine,
};

use crate::{commands::cluster::explain_error, terminal::Progress};

/// For how long a write is tried that others come in between, or that a guard denies which has not heard yet.
const PATIENCE: Duration = Duration::from_secs(15);

/// How long to wait between two looks.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// How long API servers may take to observe what they call, and others to observe where a Service leads.
pub(super) const PROPAGATION_DELAY: Duration = Duration::from_secs(10);

/// Waits until `check` finds nothing more to wait for: it says for what.
///
/// # Errors
///
/// When that takes too long, or cannot be seen.
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

/// Waits until everybody has observed what was written last.
pub(super) async fn wait_for_propagation(progress: &mut Progress, what: &str) {
    progress.wait_for(format!("API servers to observe {what}"));
    tokio::time::sleep(PROPAGATION_DELAY).await;
}

/// Makes of an object what `change` makes of it, in one write; nothing where that is what it is, or where it is gone.
/// Returns what is there then.
///
/// # Errors
///
/// When the cluster does not take it.
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

/// Changes labels and annotations of an object that is there; null takes one away.
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
        // The first one is the guard.
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

/// Makes everything that others have applied of an object Windlass' own, so that only what Windlass applies stays.
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
        let Some(fields) = handed_over(&live).filter(|_| !is_ours) else {
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

/// Deletes an object if it still is the one with this uid, with what it owns first.
///
/// # Errors
///
/// When the cluster refuses.
pub(super) async fn delete(cluster: &Cluster, key: &ObjectKey, uid: Option<&str>) -> anyhow::Result<()> {
    match cluster.delete_after_dependents(key, uid).await {
        // Another one has the name now.
        Err(error) if error.is_conflict() => Ok(()),
        Err(RequestError::UnknownKind { .. }) => Ok(()),
        deleted => deleted.map_err(explain_error),
    }
}

/// Creates an object as it was recorded.
///
/// # Errors
///
/// When the cluster does not take it.
pub(super) async fn create(cluster: &Cluster, recorded: &Value) -> anyhow::Result<()> {
    let Some(key) = ObjectKey::from_object(recorded) else {
        return Ok(());
    };
    let mut object = recorded.clone();
    json::fields(&mut object, &["metadata"]).shift_remove("uid");
    let started = Instant::now();
    loop {
        match cluster.create(&object, names::COMMAND).await {
            // The one before is still going.
            Err(error) if error.is_conflict() && started.elapsed() < PATIENCE => {}
            created => return created.map(drop).map_err(|error| with_key(&key, error)),
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// What a problem with an object is, with its name.
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

/// Who has written what does not matter, but whether Windlass has applied it.
fn is_up_to_date(live: &Value, changed: &Value) -> bool {
    let bare = |object: &Value| {
        let mut bare = object.clone();
        bare["metadata"]["managedFields"] = Value::Null;
        bare
    };
    let is_applied = |object: &Value| applied_by(object, names::INSTALL);
    object::is_terminating(live) || bare(live) == bare(changed) && is_applied(live) == is_applied(changed)
}
