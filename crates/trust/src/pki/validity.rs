//! The validity of a certificate, and the conversion between the time types of the X.509 crates and ours.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use x509_parser::time::ASN1Time;

/// The validity of a certificate in whole seconds, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Validity {
    /// The first valid second.
    pub not_before: Timestamp,
    /// The last valid second.
    pub not_after: Timestamp,
}

impl Validity {
    /// Returns the validity, cut at `end`.
    #[must_use]
    pub fn capped(self, end: Timestamp) -> Self {
        Self {
            not_after: self.not_after.min(end),
            ..self
        }
    }

    /// Returns the overlap of both, as a cross certificate needs it.
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        Self {
            not_before: self.not_before.max(other.not_before),
            ..self.capped(other.not_after)
        }
    }

    /// Reports whether `now` is in it.
    pub fn contains(&self, now: Timestamp) -> bool {
        self.not_before.as_second() <= now.as_second() && !self.is_over(now)
    }

    /// Reports whether `now` is after it.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.not_after.as_second() < now.as_second()
    }
}

impl From<&x509_parser::certificate::Validity> for Validity {
    fn from(validity: &x509_parser::certificate::Validity) -> Self {
        Self {
            not_before: timestamp(validity.not_before),
            not_after: timestamp(validity.not_after),
        }
    }
}

/// Converts a time for the crate that encodes certificates; `None` if it does not support the year.
pub(super) fn date_time(timestamp: Timestamp) -> Option<OffsetDateTime> {
    OffsetDateTime::from_unix_timestamp(timestamp.as_second()).ok()
}

/// Converts an X.509 time. X.509 ends with the year 9999; later times than `Timestamp` supports are cut off.
fn timestamp(time: ASN1Time) -> Timestamp {
    let seconds = time.timestamp();
    Timestamp::from_second(seconds.clamp(Timestamp::MIN.as_second(), Timestamp::MAX.as_second()))
        .unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::pki::sample::{DAY, NOW};

    const SECOND: SignedDuration = SignedDuration::from_secs(1);
    const HALF: SignedDuration = SignedDuration::from_millis(500);

    #[test]
    fn both_ends_are_inclusive() {
        let validity = Validity {
            not_before: NOW,
            not_after: NOW + DAY,
        };
        for (moment, contained, over) in [
            (NOW - SECOND, false, false),
            (NOW, true, false),
            (NOW + DAY, true, false),
            (NOW + DAY + HALF, true, false),
            (NOW + DAY + SECOND, false, true),
        ] {
            assert_eq!(validity.contains(moment), contained, "{moment}");
            assert_eq!(validity.is_over(moment), over, "{moment}");
        }
    }

    #[test]
    fn fractions_of_seconds_are_ignored() {
        let validity = Validity {
            not_before: NOW + HALF,
            not_after: NOW + DAY + HALF,
        };
        assert!(validity.contains(NOW));
        assert!(!validity.is_over(NOW + DAY));
        assert!(validity.is_over(NOW + DAY + SECOND));
    }

    #[test]
    fn a_cap_only_shortens() {
        let validity = Validity {
            not_before: NOW,
            not_after: NOW + DAY,
        };
        assert_eq!(validity.capped(NOW + DAY * 2), validity);
        assert_eq!(validity.capped(NOW + SECOND).not_after, NOW + SECOND);
    }

    #[test]
    fn an_intersection_has_the_later_start_and_the_earlier_end() {
        let validity = |from: Timestamp, days: i32| Validity {
            not_before: from,
            not_after: from + DAY * days,
        };
        let (one, other) = (validity(NOW, 3), validity(NOW + DAY, 1));
        assert_eq!(one.intersection(other), other);
        assert_eq!(other.intersection(one), other);
        let later = validity(NOW + DAY, 5);
        assert_eq!(one.intersection(later), validity(NOW + DAY, 2));
    }

    #[test]
    fn every_timestamp_in_range_is_encodable() {
        for time in [Timestamp::MIN, NOW, Timestamp::MAX] {
            assert!(date_time(time).is_some(), "{time}");
        }
    }
}
