//! Trying stored objects against new schemas, now and again, and remembering what came of it.
//!
//! An install that is refused is looked at every few seconds, and its objects need not be read each time: nothing but a
//! change of them, of their CRD or of the bundle makes a difference.

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use windlass_cluster::{Kind, apply::FieldOwner, lease::NotLeading, telemetry::chain};
use windlass_crd::upgrade_safety::{Finding, Policy, TrialResult, UpgradeRule};

use super::pages::try_objects;
use crate::{
    bundle_deployment::{
        halt::{BundleDeploymentError, Halt},
        memory::{CrdChange, LatestTrial},
        reconciler::BundleReconciler,
    },
    install::status::{InstallOutcome, Milestone},
};

/// Pauses between two trials of the same double until they are so many times as long as the first.
const LONGEST_PAUSE: u32 = 12;

impl BundleReconciler {
    /// What the changes do to objects that are stored; halts where these cannot be read.
    pub(super) async fn object_findings(
        &self,
        owner: &FieldOwner,
        changes: &[Arc<CrdChange>],
        policy: &Policy,
    ) -> Result<Vec<Finding>, Halt> {
        self.trials.keep(&owner.bundle_deployment, changes);
        let mut findings = Vec::new();
        for change in changes {
            let crd = &change.crd;
            if policy.ignores(crd, UpgradeRule::StoredObjects) {
                continue;
            }
            let latest = self.latest_trial(owner, change).await?;
            match latest.outcome {
                Ok(tried) => findings.extend(tried.iter().flat_map(|tried| tried.findings(crd, policy))),
                Err(error) => {
                    let message = format!(
                        "cannot read objects of {crd} to validate them against its new schema: {error}; to skip this, add {crd} and the rule {} to spec.crdUpgradeExceptions",
                        UpgradeRule::StoredObjects
                    );
                    let standing =
                        InstallOutcome::waiting(Milestone::Accepted, "StoredObjectsUnread", message);
                    let left = latest.next.duration_since(self.context.clock.now());
                    return Err(Halt::Later(
                        standing,
                        Duration::try_from(left).unwrap_or_default(),
                    ));
                }
            }
        }
        Ok(findings)
    }

    /// The latest trial of the objects of a CRD; another one when it is time for that.
    async fn latest_trial(&self, owner: &FieldOwner, change: &Arc<CrdChange>) -> Result<LatestTrial, Halt> {
        let (deployment, crd) = (&owner.bundle_deployment, &change.crd);
        let subject = change.subject();
        let known = self.trials.find(deployment, crd, &subject);
        let now = self.context.clock.now();
        let pause = match known {
            Some(latest) if now < latest.next => return Ok(latest),
            Some(latest) => latest
                .pause
                .saturating_mul(2)
                .min(self.timing.recheck.saturating_mul(LONGEST_PAUSE)),
            None => self.timing.recheck,
        };
        let outcome = match self.try_versions(change).await {
            Ok(tried) => Ok(tried.into()),
            Err(BundleDeploymentError::Request(error)) if !NotLeading::is_cause_of(&error) => {
                Err(chain(&error))
            }
            // No news about the objects.
            Err(error) => return Err(error.into()),
        };
        let now = self.context.clock.now();
        let latest = LatestTrial {
            subject,
            outcome,
            next: SignedDuration::try_from(pause)
                .ok()
                .and_then(|pause| now.checked_add(pause).ok())
                .unwrap_or(Timestamp::MAX),
            pause,
        };
        self.trials.add(deployment, crd, latest.clone());
        Ok(latest)
    }

    async fn try_versions(&self, change: &Arc<CrdChange>) -> Result<Vec<TrialResult>, BundleDeploymentError> {
        let begun = change.clone();
        // Large schemas take a while.
        let trials = tokio::task::spawn_blocking(move || begun.trials()).await?;
        let mut tried = Vec::new();
        for trial in trials {
            let kind = Kind::from_crd(&change.live, trial.version());
            tried.push(try_objects(&self.context.cluster, &kind, trial).await?);
        }
        Ok(tried)
    }
}
