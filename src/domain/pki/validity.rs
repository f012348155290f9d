//! When a certificate is valid; and the only place where the time types of the X.509 crates meet ours.

use jiff::Timestamp;
use time::OffsetDateTime;
use x509_parser::time::ASN1Time;

/// The time in which a certificate is valid, both ends included. Certificates count in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Validity {
    /// The first second.
    pub not_before: Timestamp,
    /// The last second.
    pub not_after: Timestamp,
}

// === impl Validity ===

impl Validity {
    /// The same, but not beyond `end`.
    #[must_use]
    pub fn capped(self, end: Timestamp) -> Self {
        Self {
            not_after: self.not_after.min(end),
            ..self
        }
    }

    /// Whether `now` lies after it.
    pub fn is_over(&self, now: Timestamp) -> bool {
        whole_second(self.not_after) < whole_second(now)
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

/// The same moment for the crate that writes certificates; `None` where it has no such year.
pub(super) fn date_time(timestamp: Timestamp) -> Option<OffsetDateTime> {
    OffsetDateTime::from_unix_timestamp(timestamp.as_second()).ok()
}

/// The same moment in our words. X.509 ends with the year 9999, so what lies beyond our range is cut off.
fn timestamp(time: ASN1Time) -> Timestamp {
    let seconds = time.timestamp();
    Timestamp::from_second(seconds.clamp(Timestamp::MIN.as_second(), Timestamp::MAX.as_second()))
        .unwrap_or(Timestamp::MAX)
}

/// X.509 knows no fractions of a second.
fn whole_second(timestamp: Timestamp) -> Timestamp {
    Timestamp::from_second(timestamp.as_second()).unwrap_or(timestamp)
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::domain::pki::sample::{DAY, NOW};

    const SECOND: SignedDuration = SignedDuration::from_secs(1);
    const HALF: SignedDuration = SignedDuration::from_millis(500);

    #[test]
    fn the_end_belongs_to_it() {
        let validity = Validity {
            not_before: NOW,
            not_after: NOW + DAY,
        };
        for (moment, over) in [
            (NOW - SECOND, false),
            (NOW, false),
            (NOW + DAY, false),
            (NOW + DAY + HALF, false),
            (NOW + DAY + SECOND, true),
        ] {
            assert_eq!(validity.is_over(moment), over, "{moment}");
        }
    }

    #[test]
    fn fractions_of_seconds_do_not_count() {
        let validity = Validity {
            not_before: NOW + HALF,
            not_after: NOW + DAY + HALF,
        };
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
    fn every_time_of_ours_can_be_written() {
        for time in [Timestamp::MIN, NOW, Timestamp::MAX] {
            assert!(date_time(time).is_some(), "{time}");
        }
    }
}
