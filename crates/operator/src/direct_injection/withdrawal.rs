//! Taking a trust bundle away from a target that asks for none any more.

use std::{collections::HashMap, time::Duration};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;
use tracing::info;
use windlass_cluster::{RequestError, worker::Action};
use windlass_object::{ObjectKey, names, object};
use windlass_trust::injection::{CaRequests, ManagedElsewhere, TargetKinds, is_left_behind, withdrawal};

use super::reconcile::DirectInjector;

/// Since when targets ask for nothing any more that carry what was injected.
#[derive(Default)]
pub(super) struct Withdrawals(Mutex<HashMap<ObjectKey, Instant>>);

/// How long a target keeps its trust bundle without asking for it: whoever wrote it anew may have forgotten the annotation, and an
/// install puts it back.
const PATIENCE: Duration = Duration::from_secs(10);

// === impl Withdrawals ===

impl Withdrawals {
    /// How long to wait still.
    fn wait(&self, target: &ObjectKey) -> Duration {
        let mut all = self.0.lock();
        let since = all.entry(target.clone()).or_insert_with(Instant::now);
        PATIENCE.saturating_sub(since.elapsed())
    }

    /// It asks again, or carries nothing any more.
    pub(super) fn forget(&self, target: &ObjectKey) {
        self.0.lock().remove(target);
    }
}

// === impl DirectInjector ===

impl DirectInjector {
    /// Takes away from a target what was injected, if it asks for nothing, and nobody else has written it since.
    pub(super) async fn withdraw(&self, seen: &Value, key: &ObjectKey) -> Result<Action, RequestError> {
        let kinds = self.context.index.target_kinds();
        if !is_withdrawn(seen, &kinds) {
            self.withdrawals.forget(key);
            return Ok(Action::AwaitChange);
        }
        let wait = self.withdrawals.wait(key);
        if !wait.is_zero() {
            return Ok(Action::Requeue(wait));
        }
        self.withdrawals.forget(key);
        // Who owns what is known by the whole object alone.
        let live = self.context.cluster.read(key).await?;
        let Some(live) = live.filter(|live| is_withdrawn(live, &kinds)) else {
            return Ok(Action::AwaitChange);
        };
        let Some(patch) = withdrawal(&live, &kinds) else {
            return Ok(Action::AwaitChange);
        };
        let turn = self.context.pace_of(key).turn().await;
        let write = self.context.cluster.patch_for_version(key, patch, names::INJECT);
        match turn.write(write).await {
            Ok(_) => {
                info!(object = %key, "Took the trust bundle away");
                let message =
                    "the annotation that asked for a trust bundle is gone: took away what was injected";
                self.context
                    .note_of_target(key, &live, "TrustBundleWithdrawn", message);
                Ok(Action::AwaitChange)
            }
            // It has changed meanwhile, and that brings us back.
            Err(error) if error.is_invalid() || error.is_conflict() || error.is_not_found() => {
                Ok(Action::AwaitChange)
            }
            Err(error) => Err(error),
        }
    }
}

/// Whether a target carries what was injected, and asks for nothing. What an install has applied is its own to arm and disarm; what
/// asks somebody else is theirs.
fn is_withdrawn(target: &Value, kinds: &TargetKinds) -> bool {
    let is_installed = object::label(target, names::BUNDLE_DEPLOYMENT).is_some();
    is_left_behind(target, kinds)
        && !is_installed
        && !CaRequests::are_made(target, kinds)
        && ManagedElsewhere::check(target, kinds).is_ok()
}
