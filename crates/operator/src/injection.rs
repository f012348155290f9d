//! Giving a trust bundle to a target.

use std::{borrow::Cow, time::Duration};

use serde_json::Value;
use tracing::info;
use windlass_cluster::{Cluster, RequestError, WriteTurn, watch::Watch};
use windlass_object::{ObjectKey, names};
use windlass_trust::injection::{self, Injection, TargetKinds};

/// After what time targets are looked at where nothing but their trust bundle has changed: what somebody else took from
/// them is given back by then, and that is not to wait for anything else.
pub(super) const REPAIRED: Duration = Duration::from_millis(100);

/// What sees the targets of each kind that carries CA bundles by itself, in each of the clusters.
pub(super) fn watches(cluster: &Cluster) -> impl Iterator<Item = Watch> {
    let remote = cluster.remote().map(|_| Watch::for_remote_targets());
    let own = injection::KINDS.iter().flat_map(Watch::for_target);
    own.chain(remote.into_iter().flatten())
}

/// What became of an injection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum InjectionOutcome {
    /// The target carries the trust bundle, and did before.
    Unchanged,
    /// The target was written, and has this resourceVersion since, if the API server says.
    Written(Option<String>),
    /// Somebody else has given the target another trust bundle meanwhile; that change brings us back.
    Overtaken,
    /// The target is not there any more.
    Gone,
    /// The target must be left alone, or the API server refuses the write; for this reason.
    Refused(String),
}

/// How often an injection is tried where somebody else writes the target at the same time.
const TRIES: usize = 5;

// === impl InjectionOutcome ===

impl InjectionOutcome {
    /// Whether the target was written.
    pub(super) fn is_written(&self) -> bool {
        matches!(self, Self::Written(_))
    }
}

/// Brings a target to carry the trust bundle in the place of what it was seen to carry. A target that carries something
/// else by now is left to a later plan, which may know of a newer trust bundle.
///
/// # Errors
///
/// When the API server could not be asked, or has no time for it now.
pub(super) async fn inject(
    cluster: &Cluster,
    turn: WriteTurn<'_>,
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
        match turn.write(write).await {
            Ok(version) => {
                info!(object = %key, "Injected the trust bundle");
                return Ok(InjectionOutcome::Written(version));
            }
            Err(error) if is_gone(&error) => return Ok(InjectionOutcome::Gone),
            Err(error) if error.is_forbidden() => return Ok(InjectionOutcome::Refused(error.to_string())),
            Err(error) if error.is_invalid() || error.is_conflict() => {
                let patch = injection.plan(&target).ok().flatten();
                // Refused again, and made from the target as it is: it is not that somebody else was faster.
                if failed.is_some() && failed == patch && error.is_invalid() {
                    return Ok(InjectionOutcome::Refused(error.to_string()));
                }
                failed = patch;
                match cluster.read(key).await? {
                    Some(live) if injection.is_as_before(&target, &live) => target = Cow::Owned(live),
                    Some(_) => return Ok(InjectionOutcome::Overtaken),
                    None => return Ok(InjectionOutcome::Gone),
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(InjectionOutcome::Overtaken)
}

/// Gives up the ownership that an injection has left in a target, where that is in the way of who applies it. A target that has
/// changed meanwhile is left to the next look.
///
/// # Errors
///
/// As [`inject`].
pub(super) async fn release(
    cluster: &Cluster,
    turn: WriteTurn<'_>,
    key: &ObjectKey,
    target: &Value,
    kinds: &TargetKinds,
) -> Result<(), RequestError> {
    let Some(patch) = injection::release(target, kinds) else {
        return Ok(());
    };
    let write = cluster.patch_for_version(key, patch, names::INJECT);
    match turn.write(write).await {
        Err(error) if !is_gone(&error) && !error.is_invalid() && !error.is_conflict() => Err(error),
        _ => Ok(()),
    }
}

fn is_gone(error: &RequestError) -> bool {
    error.is_not_found() || matches!(error, RequestError::UnknownKind { .. })
}
