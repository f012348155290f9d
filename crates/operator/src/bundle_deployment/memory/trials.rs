//! The latest trials of stored objects against CRDs that are to change.

use std::{collections::HashMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::Value;
use windlass_cluster::apply::body_hash;
use windlass_crd::upgrade_safety::{Trial, TrialResult, versions_to_try};
use windlass_object::object;

/// A CRD that is to become another.
pub(in crate::bundle_deployment) struct CrdChange {
    /// Its name.
    pub(in crate::bundle_deployment) crd: String,
    /// As it is in the cluster.
    pub(in crate::bundle_deployment) live: Value,
    /// As the bundle wants it.
    pub(in crate::bundle_deployment) desired: Value,
}

/// What came of the latest trials, by BundleDeployment and CustomResourceDefinition.
#[derive(Default)]
pub(in crate::bundle_deployment) struct Trials {
    known: Mutex<HashMap<String, HashMap<String, LatestTrial>>>,
}

/// The latest trial of the objects of a CRD.
#[derive(Clone)]
pub(in crate::bundle_deployment) struct LatestTrial {
    pub(in crate::bundle_deployment) subject: TrialSubject,
    pub(in crate::bundle_deployment) outcome: TrialOutcome,
    /// When they are tried again.
    pub(in crate::bundle_deployment) next: Timestamp,
    /// How long that is after this time.
    pub(in crate::bundle_deployment) pause: Duration,
}

/// What was tried against what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::bundle_deployment) struct TrialSubject {
    uid: String,
    generation: Option<i64>,
    /// The hash of the CRD that is desired.
    desired: String,
}

/// What was found out about each version, or why the objects cannot be read.
pub(in crate::bundle_deployment) type TrialOutcome = Result<Arc<[TrialResult]>, String>;

impl Trials {
    /// Forgets a BundleDeployment that is gone.
    pub(in crate::bundle_deployment) fn forget(&self, deployment: &str) {
        self.known.lock().remove(deployment);
    }

    /// Forgets CRDs that do not change any more.
    pub(in crate::bundle_deployment) fn keep(&self, deployment: &str, changes: &[Arc<CrdChange>]) {
        let mut known = self.known.lock();
        if changes.is_empty() {
            known.remove(deployment);
        } else if let Some(known) = known.get_mut(deployment) {
            known.retain(|crd, _| changes.iter().any(|change| change.crd == *crd));
        }
    }

    /// The latest trial of the same.
    pub(in crate::bundle_deployment) fn find(
        &self,
        deployment: &str,
        crd: &str,
        subject: &TrialSubject,
    ) -> Option<LatestTrial> {
        let known = self.known.lock();
        let latest = known.get(deployment)?.get(crd)?;
        (latest.subject == *subject).then(|| latest.clone())
    }

    /// Keeps a trial.
    pub(in crate::bundle_deployment) fn add(&self, deployment: &str, crd: &str, latest: LatestTrial) {
        let mut known = self.known.lock();
        let known = known.entry(deployment.to_owned()).or_default();
        known.insert(crd.to_owned(), latest);
    }
}

impl CrdChange {
    /// What is tried against what.
    pub(in crate::bundle_deployment) fn subject(&self) -> TrialSubject {
        let metadata = &self.live["metadata"];
        TrialSubject {
            uid: object::text(metadata, "/uid").unwrap_or_default().to_owned(),
            generation: metadata["generation"].as_i64(),
            desired: body_hash(&self.desired),
        }
    }

    /// One for each version whose objects are to be tried.
    pub(in crate::bundle_deployment) fn trials(&self) -> Vec<Trial> {
        versions_to_try(&self.live, &self.desired)
            .into_iter()
            .map(|version| Trial::new(version, &self.live, &self.desired))
            .collect()
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

    fn latest(change: &CrdChange) -> LatestTrial {
        LatestTrial {
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
