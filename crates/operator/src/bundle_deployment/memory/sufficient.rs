//! Rights that were seen to suffice: while a rollout is looked at often, nobody is asked each time.

use std::{collections::HashMap, time::Duration};

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use windlass_cluster::ServiceAccount;

use crate::install::tenancy::NeededRights;

/// Of each BundleDeployment, what its account was last seen to have, and when.
#[derive(Debug, Default)]
pub(in crate::bundle_deployment) struct SufficientRights {
    seen: Mutex<HashMap<String, (ServiceAccount, NeededRights, Timestamp)>>,
}

impl SufficientRights {
    /// Whether that account had these rights less than `believed` ago.
    pub(in crate::bundle_deployment) fn is_known(
        &self,
        name: &str,
        account: &ServiceAccount,
        needed: &NeededRights,
        now: Timestamp,
        believed: Duration,
    ) -> bool {
        let believed = SignedDuration::try_from(believed).unwrap_or(SignedDuration::MAX);
        let seen = self.seen.lock();
        seen.get(name).is_some_and(|(known, had, at)| {
            let age = now.duration_since(*at);
            known == account && had == needed && !age.is_negative() && age < believed
        })
    }

    /// Notes that it has them now.
    pub(in crate::bundle_deployment) fn note(
        &self,
        name: &str,
        account: &ServiceAccount,
        needed: &NeededRights,
        now: Timestamp,
    ) {
        let known = (account.clone(), needed.clone(), now);
        self.seen.lock().insert(name.to_owned(), known);
    }

    /// Forgets a BundleDeployment that is gone.
    pub(in crate::bundle_deployment) fn forget(&self, name: &str) {
        self.seen.lock().remove(name);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_seen_is_believed_for_a_while_of_the_same_account_and_the_same_rights() {
        let (sufficient, account) = (SufficientRights::default(), ServiceAccount::new("n", "a"));
        let needs = |kind: &str| {
            let object =
                json!({"apiVersion": "v1", "kind": kind, "metadata": {"namespace": "n", "name": "a"}});
            NeededRights::to_apply([&object], |_| None)
        };
        let (needed, now, believed) = (needs("ConfigMap"), Timestamp::UNIX_EPOCH, Duration::from_secs(5));
        let after = |seconds| now + SignedDuration::from_secs(seconds);
        assert!(!sufficient.is_known("x", &account, &needed, now, believed));
        sufficient.note("x", &account, &needed, now);
        assert!(sufficient.is_known("x", &account, &needed, after(4), believed));
        assert!(!sufficient.is_known("x", &account, &needed, after(5), believed));
        assert!(!sufficient.is_known("x", &account, &needed, after(-1), believed));
        assert!(!sufficient.is_known("x", &ServiceAccount::new("n", "b"), &needed, now, believed));
        assert!(!sufficient.is_known("x", &account, &needs("Secret"), now, believed));
        assert!(!sufficient.is_known("y", &account, &needed, now, believed));
        sufficient.forget("x");
        assert!(!sufficient.is_known("x", &account, &needed, now, believed));
    }
}
