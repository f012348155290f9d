//! Injection of trust bundles into targets.

use std::{borrow::Cow, time::Duration};

use serde_json::Value;
use tracing::info;
use windlass_cluster::{Cluster, RequestError, WritePermit, watch::Watch};
use windlass_object::{ObjectKey, names};
use windlass_trust::injection::{self, Injection, TargetKinds};

/// Delay of the reconciliation after a change of only the trust bundle in a target. In the meantime the
/// faster repair restores an overwritten trust bundle.
pub(super) const RECONCILE_DELAY: Duration = Duration::from_millis(100);

/// Returns the watches for targets of the built-in kinds, in each cluster.
pub(super) fn watches(cluster: &Cluster) -> impl Iterator<Item = Watch> {
    let remote = cluster.remote().map(|_| Watch::for_remote_targets());
    let own = injection::KINDS.iter().flat_map(Watch::for_target);
    own.chain(remote.into_iter().flatten())
}

/// Result of an injection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum InjectionOutcome {
    /// The target already contained the trust bundle.
    Unchanged,
    /// The target was written. Contains the new resourceVersion, if the API server returned one.
    Written(Option<String>),
    /// Another client has changed the trust bundle in the meantime. That change triggers the next
    /// reconciliation.
    Overtaken,
    /// The target does not exist.
    Gone,
    /// The target must not be written, or the API server rejected the write, for this reason.
    Refused(String),
}

/// Number of attempts if another client writes the target at the same time.
const TRIES: usize = 5;

impl InjectionOutcome {
    /// Reports whether the target was written.
    pub(super) fn is_written(&self) -> bool {
        matches!(self, Self::Written(_))
    }
}

/// Injects a trust bundle into a target, if the target still contains the observed one. Otherwise a later
/// plan, which may have a newer trust bundle, handles it.
///
/// # Errors
///
/// If the API server cannot be reached or is overloaded.
pub(super) async fn inject(
    cluster: &Cluster,
    permit: WritePermit<'_>,
    key: &ObjectKey,
    seen: &Value,
    injection: &Injection,
) -> Result<InjectionOutcome, RequestError> {
    let mut target = Cow::Borrowed(seen);
    let mut failed = None;
    for _ in 0..TRIES {
        let patch = match injection.plan(&target) {
            Ok(None) => return Ok(InjectionOutcome::Unchanged),
            Ok(Some(patch)) => patch,
            Err(error) => return Ok(InjectionOutcome::Refused(error.to_string())),
        };
        let write = cluster.patch_for_version(key, patch, names::INJECT);
        match permit.write(write).await {
            Ok(version) => {
                info!(object = %key, "Injected the trust bundle");
                return Ok(InjectionOutcome::Written(version));
            }
            Err(error) if is_gone(&error) => return Ok(InjectionOutcome::Gone),
            Err(error) if error.is_forbidden() => return Ok(InjectionOutcome::Refused(error.to_string())),
            Err(error) if error.is_invalid() || error.is_conflict() => {
                let patch = injection.plan(&target).ok().flatten();
                // The same patch from the latest version was rejected again, so the cause is not a concurrent
                // write.
                if failed.is_some() && failed == patch && error.is_invalid() {
                    return Ok(InjectionOutcome::Refused(error.to_string()));
                }
                failed = patch;
                match cluster.read(key).await? {
                    Some(live) if injection.has_same_bundles(&target, &live) => target = Cow::Owned(live),
                    Some(_) => return Ok(InjectionOutcome::Overtaken),
                    None => return Ok(InjectionOutcome::Gone),
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(InjectionOutcome::Overtaken)
}

/// Releases the leftover field ownership of an injection, which would obstruct clients that apply the target.
/// Skips a target that has changed in the meantime.
///
/// # Errors
///
/// As [`inject`].
pub(super) async fn release(
    cluster: &Cluster,
    permit: WritePermit<'_>,
    key: &ObjectKey,
    target: &Value,
    kinds: &TargetKinds,
) -> Result<(), RequestError> {
    let Some(patch) = injection::release(target, kinds) else {
        return Ok(());
    };
    let write = cluster.patch_for_version(key, patch, names::INJECT);
    match permit.write(write).await {
        Err(error) if !is_gone(&error) && !error.is_invalid() && !error.is_conflict() => Err(error),
        _ => Ok(()),
    }
}

fn is_gone(error: &RequestError) -> bool {
    error.is_not_found() || matches!(error, RequestError::UnknownKind { .. })
}
