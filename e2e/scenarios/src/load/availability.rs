//! When a version was served that is not always served.

use std::{collections::BTreeMap, time::Instant};

/// The changes of whether versions were served, as answers show them.
#[derive(Clone, Debug, Default)]
pub struct Availability {
    versions: BTreeMap<String, Vec<Change>>,
}

#[derive(Clone, Copy, Debug)]
struct Change {
    served: bool,
    /// When the first answer showed it.
    answered: Instant,
}

impl Availability {
    /// Records an answer. A request that was sent before the last change was visible proves no further
    /// change.
    pub(super) fn record(&mut self, version: &str, served: bool, sent: Instant, answered: Instant) {
        let changes = self.versions.entry(version.to_owned()).or_default();
        let is_news = changes
            .last()
            .is_none_or(|last| last.served != served && last.answered <= sent);
        if is_news {
            changes.push(Change { served, answered });
        }
    }

    /// Returns whether `version` was served: at first, and after each change.
    pub fn states(&self, version: &str) -> Vec<bool> {
        let changes = self.versions.get(version).into_iter().flatten();
        changes.map(|change| change.served).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn only_a_request_sent_after_a_change_shows_the_next_one() {
        let start = Instant::now();
        let at = |second| start + Duration::from_secs(second);
        let mut availability = Availability::default();
        for (served, sent, answered, expected) in [
            (true, 0, 1, vec![true]),
            (true, 1, 2, vec![true]),
            (false, 2, 4, vec![true, false]),
            // It was under way when the version was withdrawn.
            (true, 3, 5, vec![true, false]),
            (true, 4, 5, vec![true, false, true]),
        ] {
            availability.record("v2", served, at(sent), at(answered));
            assert_eq!(availability.states("v2"), expected, "{sent} to {answered}");
        }
        assert!(availability.states("v1").is_empty());
    }
}
