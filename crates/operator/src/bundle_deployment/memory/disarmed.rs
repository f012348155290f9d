//! When something was disarmed last: API servers hear of it later.

use std::{collections::HashMap, time::Duration};

use jiff::Timestamp;
use parking_lot::Mutex;

/// When something was disarmed last, by BundleDeployment: API servers hear of it later.
///
/// A process that has just started does not know what the one before it disarmed. It waits as if that had been now.
pub(in crate::bundle_deployment) struct Disarmed {
    started: Timestamp,
    last: Mutex<HashMap<String, Timestamp>>,
}

// === impl Disarmed ===

impl Disarmed {
    pub(in crate::bundle_deployment) fn new(started: Timestamp) -> Self {
        Self {
            started,
            last: Mutex::default(),
        }
    }

    /// Notes that something was disarmed for a BundleDeployment.
    pub(in crate::bundle_deployment) fn note(&self, name: &str, now: Timestamp) {
        self.last.lock().insert(name.to_owned(), now);
    }

    /// Forgets a BundleDeployment that is gone.
    pub(in crate::bundle_deployment) fn forget(&self, name: &str) {
        self.last.lock().remove(name);
    }

    /// How much of `delay` is left.
    pub(in crate::bundle_deployment) fn left(
        &self,
        name: &str,
        now: Timestamp,
        delay: Duration,
    ) -> Option<Duration> {
        let since = self.last.lock().get(name).copied().unwrap_or(self.started);
        let waited = Duration::try_from(now.duration_since(since)).unwrap_or_default();
        delay.checked_sub(waited).filter(|left| !left.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_process_waits_as_if_it_had_disarmed_at_its_start() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let delay = Duration::from_secs(10);
        let disarmed = Disarmed::new(at(100));
        assert_eq!(disarmed.left("a", at(100), delay), Some(delay));
        assert_eq!(disarmed.left("a", at(104), delay), Some(Duration::from_secs(6)));
        assert_eq!(disarmed.left("a", at(110), delay), None);
        disarmed.note("a", at(120));
        assert_eq!(disarmed.left("a", at(121), delay), Some(Duration::from_secs(9)));
        assert_eq!(disarmed.left("b", at(121), delay), None);
        disarmed.forget("a");
        assert_eq!(disarmed.left("a", at(121), delay), None);
        assert_eq!(disarmed.left("a", at(50), Duration::ZERO), None);
    }
}
