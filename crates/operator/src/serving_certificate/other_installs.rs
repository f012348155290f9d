//! Whether other installations of Windlass are active, judged by the renewal of their Leases.

use std::{collections::HashMap, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

/// How long a Lease may stay unchanged until its installation counts as stopped: several times the lease
/// duration.
const RENEWED_WITHIN: Duration = Duration::from_secs(60);

/// Leases of other installations, by namespace. Only changes count, not the times in a Lease, since its clock
/// may be wrong.
#[derive(Default)]
pub(super) struct OtherInstalls(Mutex<HashMap<String, SeenLease>>);

/// A Lease as observed.
struct SeenLease {
    version: String,
    /// When this process first observed this version.
    since: Instant,
}

impl OtherInstalls {
    /// Reports whether a Lease, now at `version`, has changed recently or may have.
    pub(super) fn is_renewed(&self, namespace: &str, version: &str, now: Instant) -> bool {
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

    /// Forgets an installation.
    pub(super) fn forget(&self, namespace: &str) {
        self.0.lock().remove(namespace);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installation_that_stops_renewing_its_lease_counts_as_stopped() {
        let (other_installs, start) = (OtherInstalls::default(), Instant::now());
        let is_renewed = |version: &str, after: u32| {
            other_installs.is_renewed("other", version, start + RENEWED_WITHIN / 4 * after)
        };
        assert!(is_renewed("1", 0), "it may have just been renewed");
        assert!(is_renewed("1", 3));
        assert!(is_renewed("2", 4), "it was renewed");
        assert!(is_renewed("2", 7));
        assert!(!is_renewed("2", 8));
        assert!(is_renewed("3", 9), "it is renewed again");
    }
}
