//! What the API server said of plans that were tried.

use std::{collections::HashMap, time::Duration};

use jiff::Timestamp;
use parking_lot::Mutex;

/// What the API server said last of each BundleDeployment's plan.
#[derive(Default)]
pub(in crate::bundle_deployment) struct DryRuns(Mutex<HashMap<String, DryRun>>);

/// What it said of one.
struct DryRun {
    subject: String,
    refusals: Vec<String>,
    at: Timestamp,
}

// === impl DryRuns ===

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

    /// Keeps what was said.
    pub(in crate::bundle_deployment) fn keep(
        &self,
        name: &str,
        subject: String,
        refusals: Vec<String>,
        at: Timestamp,
    ) {
        let dry_run = DryRun {
            subject,
            refusals,
            at,
        };
        self.0.lock().insert(name.to_owned(), dry_run);
    }

    /// Forgets one that is gone, or has nothing left to try.
    pub(in crate::bundle_deployment) fn forget(&self, name: &str) {
        self.0.lock().remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_is_not_asked_again_and_what_was_refused_is_after_a_while() {
        let dry_runs = DryRuns::default();
        let at = |second| Timestamp::from_second(second).unwrap();
        let find = |dry_runs: &DryRuns, subject: &str, second| {
            dry_runs.find("a", subject, at(second), Duration::from_secs(60))
        };
        assert_eq!(find(&dry_runs, "1", 0), None);
        dry_runs.keep("a", "1".to_owned(), Vec::new(), at(0));
        assert_eq!(find(&dry_runs, "1", 1_000_000), Some(Vec::new()));
        assert_eq!(find(&dry_runs, "2", 0), None, "something is different");
        dry_runs.keep("a", "2".to_owned(), vec!["no".to_owned()], at(0));
        assert_eq!(find(&dry_runs, "2", 59), Some(vec!["no".to_owned()]));
        assert_eq!(find(&dry_runs, "2", 60), None);
        dry_runs.forget("a");
        assert_eq!(find(&dry_runs, "2", 0), None);
    }
}
