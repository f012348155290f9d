//! Trying stored objects against new schemas, now and again, and remembering what came of it.
//!
//! An install that is refused is looked at every few seconds, and its objects need not be read each time: nothing but a
//! change of them, of their CRD or of the bundle makes a difference.

use std::{collections::HashMap, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde_json::Value;
use windlass_cluster::{
    Kind,
    apply::{Applicant, body_hash},
    lease::NotLeading,
    telemetry::chain,
};
use windlass_crd::upgrade_safety::{Finding, Policy, Trial, Tried, UpgradeRule, versions_to_try};
use windlass_object::object;

use super::pages::try_objects;
use crate::{
    bundle_deployment::{BundleDeploymentError, BundleReconciler, Halt},
    install::status::{InstallOutcome, Milestone},
};

/// A CRD that is to become another.
pub(super) struct CrdChange {
    /// Its name.
    pub(super) crd: String,
    /// As it is in the cluster.
    pub(super) live: Value,
    /// As the bundle wants it.
    pub(super) desired: Value,
}

/// What came of the latest trials, by BundleDeployment and CustomResourceDefinition.
#[derive(Default)]
pub(crate) struct Trials {
    known: Mutex<HashMap<String, HashMap<String, Latest>>>,
}

/// The latest trial of the objects of a CRD.
#[derive(Clone)]
struct Latest {
    subject: Subject,
    outcome: Outcome,
    /// When they are tried again.
    next: Timestamp,
    /// How long that is after this time.
    pause: Duration,
}

/// What was tried against what.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Subject {
    uid: String,
    generation: Option<i64>,
    /// The hash of the CRD that is desired.
    desired: String,
}

/// What was found out about each version, or why the objects cannot be read.
type Outcome = Result<Arc<[Tried]>, String>;

/// Pauses between two trials of the same double until they are so many times as long as the first.
const LONGEST_PAUSE: u32 = 12;

// === impl Trials ===

impl Trials {
    /// Forgets a BundleDeployment that is gone.
    pub(crate) fn forget(&self, deployment: &str) {
        self.known.lock().remove(deployment);
    }

    /// Forgets CRDs that do not change any more.
    fn keep(&self, deployment: &str, changes: &[Arc<CrdChange>]) {
        let mut known = self.known.lock();
        if changes.is_empty() {
            known.remove(deployment);
        } else if let Some(known) = known.get_mut(deployment) {
            known.retain(|crd, _| changes.iter().any(|change| change.crd == *crd));
        }
    }

    fn find(&self, deployment: &str, crd: &str, subject: &Subject) -> Option<Latest> {
        let known = self.known.lock();
        let latest = known.get(deployment)?.get(crd)?;
        (latest.subject == *subject).then(|| latest.clone())
    }

    fn add(&self, deployment: &str, crd: &str, latest: Latest) {
        let mut known = self.known.lock();
        let known = known.entry(deployment.to_owned()).or_default();
        known.insert(crd.to_owned(), latest);
    }
}

// === impl CrdChange ===

impl CrdChange {
    fn subject(&self) -> Subject {
        let metadata = &self.live["metadata"];
        Subject {
            uid: object::text(metadata, "/uid").unwrap_or_default().to_owned(),
            generation: metadata["generation"].as_i64(),
            desired: body_hash(&self.desired),
        }
    }

    /// One for each version whose objects are to be tried.
    fn trials(&self) -> Vec<Trial> {
        versions_to_try(&self.live, &self.desired)
            .into_iter()
            .map(|version| Trial::new(version, &self.live, &self.desired))
            .collect()
    }
}

// === impl BundleReconciler ===

impl BundleReconciler {
    /// What the changes do to objects that are stored; halts where these cannot be read.
    pub(super) async fn object_findings(
        &self,
        owner: &Applicant,
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
                        "objects of {crd} cannot be read to try them against its new schema: {error}; to go on without, name {crd} and the rule {} in spec.crdUpgradeExceptions",
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
    async fn latest_trial(&self, owner: &Applicant, change: &Arc<CrdChange>) -> Result<Latest, Halt> {
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
            Err(BundleDeploymentError::Request(error)) if !NotLeading::caused(&error) => Err(chain(&error)),
            // No news about the objects.
            Err(error) => return Err(error.into()),
        };
        let now = self.context.clock.now();
        let latest = Latest {
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

    async fn try_versions(&self, change: &Arc<CrdChange>) -> Result<Vec<Tried>, BundleDeploymentError> {
        let begun = change.clone();
        // Large schemas take a while.
        let trials = tokio::task::spawn_blocking(move || begun.trials()).await?;
        let mut tried = Vec::new();
        for trial in trials {
            let kind = Kind::of_crd(&change.live, trial.version());
            tried.push(try_objects(&self.context.cluster, &kind, trial).await?);
        }
        Ok(tried)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn change(crd: &str, generation: i64, field: &str) -> Arc<CrdChange> {
        Arc::new(CrdChange {
            crd: crd.to_owned(),
            live: json!({"metadata": {"uid": "u", "generation": generation}}),
            desired: json!({"spec": {field: {}}}),
        })
    }

    fn latest(change: &CrdChange) -> Latest {
        Latest {
            subject: change.subject(),
            outcome: Ok(Vec::new().into()),
            next: Timestamp::UNIX_EPOCH,
            pause: Duration::ZERO,
        }
    }

    #[test]
    fn what_is_known_is_about_one_definition_and_one_wanted() {
        let trials = Trials::default();
        let widgets = change("widgets", 1, "a");
        trials.add("d", "widgets", latest(&widgets));
        let knows = |deployment, change: &CrdChange| {
            let found = trials.find(deployment, &change.crd, &change.subject());
            found.is_some()
        };
        assert!(knows("d", &widgets));
        for other in [
            change("widgets", 2, "a"),
            change("widgets", 1, "b"),
            change("gadgets", 1, "a"),
        ] {
            assert!(!knows("d", &other));
        }
        assert!(!knows("e", &widgets));
    }

    #[test]
    fn what_does_not_change_any_more_is_forgotten() {
        let trials = Trials::default();
        let changes = [change("widgets", 1, "a"), change("gadgets", 1, "a")];
        let remember = || {
            for change in &changes {
                trials.add("d", &change.crd, latest(change));
            }
        };
        let known = || {
            let known = trials.known.lock();
            known.get("d").map_or(0, HashMap::len)
        };
        remember();
        trials.keep("d", &changes);
        assert_eq!(known(), 2);
        trials.keep("d", &changes[..1]);
        assert_eq!(known(), 1);
        trials.keep("d", &[]);
        assert_eq!(known(), 0);
        remember();
        trials.forget("d");
        assert_eq!(known(), 0);
    }
}
