//! What the API server said of plans that were tried.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use jiff::Timestamp;
use parking_lot::Mutex;
use windlass_object::ObjectKey;

/// What the API server said last of each BundleDeployment's plan.
#[derive(Default)]
pub(in crate::bundle_deployment) struct DryRuns(Mutex<HashMap<String, DryRun>>);

/// What it said of one.
struct DryRun {
    subject: String,
    refusals: Vec<String>,
    /// The objects that were there.
    over: BTreeSet<ObjectKey>,
    at: Timestamp,
}

impl DryRuns {
    /// The refusals of the same objects over the same ones, if that was asked and may be believed still: quotas and policies
    /// change without being seen, so that a refusal is believed only for a while (`refused`).
    pub(in crate::bundle_deployment) fn find(
        &self,
        name: &str,
        subject: &str,
        now: Timestamp,
        refused: Duration,
    ) -> Option<Vec<String>> {
        let known = self.0.lock();
        let known = known.get(name).filter(|known| known.subject == subject)?;
        let age = Duration::try_from(now.duration_since(known.at)).unwrap_or_default();
        (known.refusals.is_empty() || age < refused).then(|| known.refusals.clone())
    }

    /// Keeps what was said of a plan `over` these objects.
    pub(in crate::bundle_deployment) fn keep(
        &self,
        name: &str,
        subject: String,
        refusals: Vec<String>,
        over: BTreeSet<ObjectKey>,
        at: Timestamp,
    ) {
        let dry_run = DryRun {
            subject,
            refusals,
            over,
            at,
        };
        self.0.lock().insert(name.to_owned(), dry_run);
    }

    /// Whether a plan was refused while an object was there: should it be gone, that plan is tried before it comes back.
    pub(in crate::bundle_deployment) fn is_refused_over(&self, name: &str, object: &ObjectKey) -> bool {
        let known = self.0.lock();
        let refused = known.get(name).filter(|known| !known.refusals.is_empty());
        refused.is_some_and(|refused| refused.over.contains(object))
    }

    /// Takes note that an object is gone, so that it holds its installed revision up only once.
    pub(in crate::bundle_deployment) fn hears_of_deletion(&self, name: &str, object: &ObjectKey) {
        if let Some(known) = self.0.lock().get_mut(name) {
            known.over.remove(object);
        }
    }

    /// Forgets one that is gone, or has nothing left to try.
    pub(in crate::bundle_deployment) fn forget(&self, name: &str) {
        self.0.lock().remove(name);
    }
}

#[cfg(test)]
mod tests {
    use windlass_object::InCluster;

    use super::*;

    #[test]
    fn what_was_taken_is_not_asked_again_and_what_was_refused_is_after_a_while() {
        let dry_runs = DryRuns::default();
        let at = |second| Timestamp::from_second(second).unwrap();
        let find = |dry_runs: &DryRuns, subject: &str, second| {
            dry_runs.find("a", subject, at(second), Duration::from_secs(60))
        };
        assert_eq!(find(&dry_runs, "1", 0), None);
        dry_runs.keep("a", "1".to_owned(), Vec::new(), BTreeSet::new(), at(0));
        assert_eq!(find(&dry_runs, "1", 1_000_000), Some(Vec::new()));
        assert_eq!(find(&dry_runs, "2", 0), None, "something is different");
        dry_runs.keep("a", "2".to_owned(), vec!["no".to_owned()], BTreeSet::new(), at(0));
        assert_eq!(find(&dry_runs, "2", 59), Some(vec!["no".to_owned()]));
        assert_eq!(find(&dry_runs, "2", 60), None);
        dry_runs.forget("a");
        assert_eq!(find(&dry_runs, "2", 0), None);
    }

    #[test]
    fn an_object_that_is_deleted_after_a_refusal_does_not_come_back_before_it_is_asked_again() {
        let dry_runs = DryRuns::default();
        let config = ObjectKey {
            cluster: InCluster::Local,
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            namespace: Some("n".to_owned()),
            name: "c".to_owned(),
        };
        let keep = |refusals: &[&str]| {
            let refusals = refusals.iter().map(|refusal| (*refusal).to_owned()).collect();
            let over = BTreeSet::from([config.clone()]);
            dry_runs.keep("a", "1".to_owned(), refusals, over, Timestamp::UNIX_EPOCH);
        };
        assert!(!dry_runs.is_refused_over("a", &config));
        keep(&["immutable"]);
        assert!(dry_runs.is_refused_over("a", &config));
        dry_runs.hears_of_deletion("a", &config);
        assert!(!dry_runs.is_refused_over("a", &config), "it was asked again");
        keep(&[]);
        assert!(!dry_runs.is_refused_over("a", &config), "nothing was refused");
    }
}
