//! Whether other installs of Windlass are at work: whether somebody renews their Leases.

use std::{collections::HashMap, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

/// How long a Lease may stay as it is before nobody is taken to renew it: several times as long as it lasts.
const RENEWED_WITHIN: Duration = Duration::from_secs(60);

/// What was seen of the Leases of other installs, by their namespaces. Calendars are not compared: theirs may be wrong.
#[derive(Default)]
pub(super) struct Neighbours(Mutex<HashMap<String, SeenLease>>);

/// A Lease as it was seen.
struct SeenLease {
    version: String,
    /// Since when it is as it is, as far as this process has seen.
    since: Instant,
}

// === impl Neighbours ===

impl Neighbours {
    /// Whether a Lease has changed lately, or may have: it is at `version` now.
    pub(super) fn renews(&self, namespace: &str, version: &str, now: Instant) -> bool {
        let mut seen = self.0.lock();
        let lease = seen.entry(namespace.to_owned()).or_insert_with(|| SeenLease {
            version: version.to_owned(),
            since: now,
        });
        if lease.version != version {
            *lease = SeenLease {
                version: version.to_owned(),
                since: now,
            };
        }
        now.saturating_duration_since(lease.since) < RENEWED_WITHIN
    }

    /// Forgets an install that is gone.
    pub(super) fn forget(&self, namespace: &str) {
        self.0.lock().remove(namespace);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_renew_a_lease_any_more_is_gone() {
        let (neighbours, start) = (Neighbours::default(), Instant::now());
        let renews = |version: &str, after: u32| {
            neighbours.renews("other", version, start + RENEWED_WITHIN / 4 * after)
        };
        assert!(renews("1", 0), "it may have been renewed just now");
        assert!(renews("1", 3));
        assert!(renews("2", 4), "it was renewed");
        assert!(renews("2", 7));
        assert!(!renews("2", 8));
        assert!(renews("3", 9), "it is back");
    }
}
