//! Removal of injected trust bundles from targets that no longer request them.

use std::{collections::HashMap, time::Duration};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;
use tracing::info;
use windlass_cluster::{RequestError, worker::Action};
use windlass_object::{ObjectKey, names, object};
use windlass_trust::injection::{CaRequests, ManagedElsewhere, TargetKinds, has_injected_bundle, withdrawal};

use super::reconcile::DirectInjector;

/// When targets with an injected trust bundle were first found without a request.
#[derive(Default)]
pub(super) struct Withdrawals(Mutex<HashMap<ObjectKey, Instant>>);

/// How long a target keeps its trust bundle after the request is gone. A client may have recreated the target
/// without the annotation, which an install adds again.
const DELAY: Duration = Duration::from_secs(10);

impl Withdrawals {
    /// Returns how long to wait before the removal.
    fn remaining_delay(&self, target: &ObjectKey) -> Duration {
        let mut all = self.0.lock();
        let since = all.entry(target.clone()).or_insert_with(Instant::now);
        DELAY.saturating_sub(since.elapsed())
    }

    /// Forgets a target that requests a trust bundle again or contains none.
    pub(super) fn forget(&self, target: &ObjectKey) {
        self.0.lock().remove(target);
    }
}

impl DirectInjector {
    /// Removes an injected trust bundle if the target requests none and no other client has changed the
    /// bundle.
    pub(super) async fn withdraw(&self, seen: &Value, key: &ObjectKey) -> Result<Action, RequestError> {
        let kinds = self.context.index.target_kinds();
        if !must_withdraw(seen, &kinds) {
            self.withdrawals.forget(key);
            return Ok(Action::AwaitChange);
        }
        let wait = self.withdrawals.remaining_delay(key);
        if !wait.is_zero() {
            return Ok(Action::Requeue(wait));
        }
        self.withdrawals.forget(key);
        // Only the complete object has its managed fields.
        let live = self.context.cluster.read(key).await?;
        let Some(live) = live.filter(|live| must_withdraw(live, &kinds)) else {
            return Ok(Action::AwaitChange);
        };
        let Some(patch) = withdrawal(&live, &kinds) else {
            return Ok(Action::AwaitChange);
        };
        let permit = self.context.pace_of(key).acquire().await;
        let write = self.context.cluster.patch_for_version(key, patch, names::INJECT);
        match permit.write(write).await {
            Ok(_) => {
                info!(object = %key, "Removed the trust bundle");
                let message =
                    "removed the injected trust bundle because the annotation that requested it is gone";
                self.context
                    .publish_target_note(key, &live, "TrustBundleWithdrawn", message);
                Ok(Action::AwaitChange)
            }
            // The target has changed in the meantime. That change triggers the next reconciliation.
            Err(error) if error.is_invalid() || error.is_conflict() || error.is_not_found() => {
                Ok(Action::AwaitChange)
            }
            Err(error) => Err(error),
        }
    }
}

/// Reports whether an injected trust bundle should be removed. Excludes objects of a BundleDeployment, whose
/// install manages them, and targets that request a bundle from another injector.
fn must_withdraw(target: &Value, kinds: &TargetKinds) -> bool {
    let is_installed = object::label(target, names::BUNDLE_DEPLOYMENT).is_some();
    has_injected_bundle(target, kinds)
        && !is_installed
        && !CaRequests::are_present(target, kinds)
        && ManagedElsewhere::check(target, kinds).is_ok()
}
