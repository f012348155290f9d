//! Giving a trust bundle to a target.

use std::{sync::LazyLock, time::Duration};

use serde_json::Value;
use tracing::info;
use windlass_cluster::{Cluster, Kind, RequestError};
use windlass_object::{ObjectKey, names};
use windlass_trust::injection::{self, Injection, TargetPatch};

/// The kinds of targets, in the version that is watched and patched.
pub(super) static TARGET_KINDS: LazyLock<Vec<Kind>> =
    LazyLock::new(|| injection::KINDS.iter().map(Kind::from).collect());

/// How many targets are written at a time.
pub(super) const INJECTIONS: usize = 16;

/// After what time targets are looked at where nothing but their trust bundle has changed: what somebody else took from
/// them is given back by then, and that is not to wait for anything else.
pub(super) const REPAIRED: Duration = Duration::from_millis(100);

/// What became of an injection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum InjectionOutcome {
    /// The target carries the trust bundle, and did before.
    Unchanged,
    /// The target was written.
    Written,
    /// Somebody else has given the target another trust bundle meanwhile; that change brings us back.
    Overtaken,
    /// The target is not there any more.
    Gone,
    /// The target must be left alone, or the API server refuses the write; for this reason.
    Refused(String),
}

/// How often an injection is tried where somebody else writes the target at the same time.
const TRIES: usize = 5;

/// Brings a target to carry the trust bundle in the place of what it was seen to carry. A target that carries something
/// else by now is left to a later plan, which may know of a newer trust bundle.
///
/// # Errors
///
/// When the API server could not be asked, or has no time for it now.
pub(super) async fn inject(
    cluster: &Cluster,
    seen: &Value,
    injection: &Injection<'_>,
) -> Result<InjectionOutcome, RequestError> {
    let Some(key) = ObjectKey::of(seen) else {
        return Ok(InjectionOutcome::Gone);
    };
    let mut target = seen.clone();
    let mut outcome = InjectionOutcome::Unchanged;
    let mut failed = None;
    for _ in 0..TRIES {
        let patch = match injection.plan(&target) {
            Ok(None) => return Ok(outcome),
            Ok(Some(TargetPatch::Inject(patch) | TargetPatch::Release(patch))) => patch,
            Err(error) => return Ok(InjectionOutcome::Refused(error.to_string())),
        };
        match cluster.patch(&key, &patch, names::INJECT).await {
            Ok(live) => {
                if outcome == InjectionOutcome::Unchanged {
                    info!(object = %key, "Injected the trust bundle");
                }
                outcome = InjectionOutcome::Written;
                target = live;
                failed = None;
            }
            Err(error) if error.is_not_found() || matches!(error, RequestError::UnknownKind { .. }) => {
                return Ok(InjectionOutcome::Gone);
            }
            Err(error) if error.is_forbidden() => return Ok(InjectionOutcome::Refused(error.to_string())),
            Err(error) if error.is_invalid() || error.is_conflict() => {
                // Refused again, and made from the target as it is: it is not that somebody else was faster.
                if failed.as_ref() == Some(&patch) && error.is_invalid() {
                    return Ok(InjectionOutcome::Refused(error.to_string()));
                }
                failed = Some(patch);
                match cluster.read(&key).await? {
                    Some(live) if injection.is_as_before(&target, &live) => target = live,
                    Some(_) if outcome == InjectionOutcome::Unchanged => {
                        return Ok(InjectionOutcome::Overtaken);
                    }
                    Some(_) => return Ok(outcome),
                    None => return Ok(InjectionOutcome::Gone),
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(InjectionOutcome::Overtaken)
}
