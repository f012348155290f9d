//! When a certificate is valid; and the only place where the time types of the X.509 crates meet ours.

use jiff::{SignedDuration, Timestamp};
use time::OffsetDateTime;
use x509_parser::time::ASN1Time;

/// How long before its issue a certificate is already valid: clocks differ from node to node.
pub const BACKDATING: SignedDuration = SignedDuration::from_mins(10);

/// The time in which a certificate is valid, both ends included, in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Validity {
    /// The first second.
    pub not_before: Timestamp,
    /// The last second.
    pub not_after: Timestamp,
}

// === impl Validity ===

impl Validity {
    /// From [`BACKDATING`] before `now` until `lifetime` after it.
    pub fn starting(now: Timestamp, lifetime: SignedDuration) -> Self {
        Self {
            not_before: whole_second(now.saturating_sub(BACKDATING).unwrap_or(Timestamp::MIN)),
            not_after: whole_second(now.saturating_add(lifetime).unwrap_or(Timestamp::MAX)),
        }
    }

    /// The same, but not beyond `end`.
    #[must_use]
    pub fn capped(self, end: Timestamp) -> Self {
        Self {
            not_after: self.not_after.min(end),
            ..self
        }
    }

    /// Whether `now` lies in it.
    pub fn contains(&self, now: Timestamp) -> bool {
        self.not_before <= now && !self.is_over(now)
    }

    /// Whether `now` lies after it.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.not_after < whole_second(now)
    }

    /// How long it is.
    pub fn length(&self) -> SignedDuration {
        self.not_after.duration_since(self.not_before)
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
    use super::*;

    const NOW: Timestamp = Timestamp::constant(1_795_000_000, 999_999_999);

    #[test]
    fn it_begins_before_now_and_ends_after_the_lifetime() {
        let validity = Validity::starting(NOW, SignedDuration::from_hours(1));
        assert_eq!(validity.not_before.as_second(), 1_795_000_000 - 600);
        assert_eq!(validity.not_after.as_second(), 1_795_000_000 + 3600);
        assert_eq!(validity.length(), SignedDuration::from_mins(70));
        assert!(validity.contains(NOW));
    }

    #[test]
    fn both_ends_belong_to_it() {
        let validity = Validity::starting(NOW, SignedDuration::from_secs(1));
        let second = SignedDuration::from_secs(1);
        assert!(validity.contains(validity.not_before));
        assert!(!validity.contains(validity.not_before - second));
        assert!(validity.contains(validity.not_after));
        assert!(validity.contains(NOW + second));
        assert!(validity.is_over(validity.not_after + second));
    }

    #[test]
    fn no_lifetime_is_too_long() {
        let validity = Validity::starting(NOW, SignedDuration::MAX);
        assert!(date_time(validity.not_after).is_some());
        assert!(date_time(Validity::starting(Timestamp::MIN, SignedDuration::ZERO).not_before).is_some());
        assert_eq!(validity.capped(NOW).not_after, NOW.min(validity.not_after));
    }
}
