//! Every duration of a rotation, in one place.

use jiff::{SignedDuration, Timestamp};
use thiserror::Error;

use crate::{
    pki::Validity,
    rotation::certificate::{CertificateId, Fingerprint},
};

/// The durations of a rotation. The first two are the user's, the others are parameters so that tests and the demo
/// can scale them down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long a serving certificate is valid.
    pub leaf_life: SignedDuration,
    /// How long a CA signs, from its first signature to its last day.
    pub authority_life: SignedDuration,
    /// From the moment a target was read back with a CA to the moment every API server trusts it.
    pub trust: SignedDuration,
    /// From the moment a certificate is in the Secret to the moment a server that reads its files again serves it.
    pub reload: SignedDuration,
    /// From the moment a certificate is in the Secret to the moment every pod that starts is given that one.
    pub overlap: SignedDuration,
    /// How far a calendar may be off, the operator's or an API server's, at the most; see [`Timing::tolerance`].
    pub clock_tolerance: SignedDuration,
    /// How often to look while waiting for endpoints.
    pub poll: SignedDuration,
    /// How often to try a target again that refused.
    pub retry: SignedDuration,
    /// The longest time without a look, because the calendar may jump.
    pub longest_sleep: SignedDuration,
    /// How many repairs of a target may follow each other at once; see [`super::RepairLimiter`].
    pub repair_burst: u32,
    /// How often a target is repaired at the least, and beyond the burst at the most.
    pub repair_interval: SignedDuration,
    /// How long a target is left alone before it is forgotten that somebody wrote it.
    pub contested_ttl: SignedDuration,
}

/// Why nothing can be issued with such durations.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TimingProblem {
    /// CAs would be replaced faster than what they sign.
    #[error(
        "ca.duration must be at least twice as long as duration: {authority_life:#} is less than twice {leaf_life:#}"
    )]
    AuthorityTooShort {
        /// The CA's.
        authority_life: SignedDuration,
        /// The serving certificate's.
        leaf_life: SignedDuration,
    },
    /// A renewed certificate would come too late to replace the one before.
    #[error(
        "duration must be at least {least:#}, because a server may take the last third of it to read a renewed certificate: {leaf_life:#} is less"
    )]
    LeafTooShort {
        /// What is asked for.
        leaf_life: SignedDuration,
        /// The shortest that works.
        least: SignedDuration,
    },
}

// === impl Timing ===

impl Default for Timing {
    fn default() -> Self {
        Self {
            leaf_life: SignedDuration::from_hours(2160),
            authority_life: SignedDuration::from_hours(8760),
            trust: SignedDuration::from_secs(30),
            reload: SignedDuration::from_secs(180),
            overlap: SignedDuration::from_secs(30),
            clock_tolerance: SignedDuration::from_hours(24),
            poll: SignedDuration::from_secs(5),
            retry: SignedDuration::from_secs(30),
            longest_sleep: SignedDuration::from_mins(10),
            repair_burst: 60,
            repair_interval: SignedDuration::from_secs(1),
            contested_ttl: SignedDuration::from_mins(10),
        }
    }
}

impl Timing {
    /// The same with all waits shortened or lengthened. Lives are what users ask for, what is allowed for clocks that are
    /// wrong has nothing to do with waiting, nor has what an API server bears: all three stay.
    #[must_use]
    pub fn with_scaled_waits(self, factor: f64) -> Self {
        Self {
            trust: self.trust.mul_f64(factor),
            reload: self.reload.mul_f64(factor),
            overlap: self.overlap.mul_f64(factor),
            poll: self.poll.mul_f64(factor),
            retry: self.retry.mul_f64(factor),
            longest_sleep: self.longest_sleep.mul_f64(factor),
            contested_ttl: self.contested_ttl.mul_f64(factor),
            ..self
        }
    }

    /// Everything that is wrong with it; nothing, if it works.
    pub fn problems(&self) -> Vec<TimingProblem> {
        let mut problems = Vec::new();
        if self.authority_life < self.leaf_life.saturating_mul(2) {
            problems.push(TimingProblem::AuthorityTooShort {
                authority_life: self.authority_life,
                leaf_life: self.leaf_life,
            });
        }
        let least = self.shortest_leaf_life();
        if self.leaf_life < least {
            problems.push(TimingProblem::LeafTooShort {
                leaf_life: self.leaf_life,
                least,
            });
        }
        problems
    }

    /// How far a calendar may be off: certificates begin that much before they are issued, and are taken to have ended
    /// that much after their end. Of a short life it is a sixth.
    pub fn tolerance(&self) -> SignedDuration {
        self.clock_tolerance.min(self.leaf_life / 6)
    }

    /// From when on something that ended then has ended whatever calendar is asked.
    pub fn surely_over(&self, end: Timestamp) -> Timestamp {
        after(end, self.tolerance())
    }

    /// The shortest life of a serving certificate that leaves servers the time to read the next one.
    pub fn shortest_leaf_life(&self) -> SignedDuration {
        let until_served = self.trust.saturating_add(self.reload).saturating_add(self.poll);
        until_served.saturating_mul(3)
    }

    /// The validity of a CA that is issued now: one life in which the CA before still signs, and its own.
    pub fn authority_validity(&self, now: Timestamp) -> Validity {
        self.validity(now, self.authority_life.saturating_mul(2))
    }

    /// The validity of a serving certificate that this CA issues now. It never outlives the CA.
    pub fn leaf_validity(&self, now: Timestamp, authority: &CertificateId) -> Validity {
        self.validity(now, self.leaf_life)
            .capped(authority.validity.not_after)
    }

    /// When a serving certificate is renewed: after two thirds of its life.
    pub fn leaf_renewal(&self, leaf: &CertificateId) -> Timestamp {
        let Validity {
            not_before,
            not_after,
        } = leaf.validity;
        renewal(
            not_before,
            not_before.duration_until(not_after),
            &leaf.fingerprint,
        )
    }

    /// Whether a serving certificate was issued when a longer life was asked for.
    pub fn outlasts(&self, leaf: &CertificateId, now: Timestamp) -> bool {
        let longest = self.leaf_life.saturating_add(self.clock_tolerance);
        leaf.validity.not_after > after(now, longest)
    }

    /// When a CA hands over to the next: after two thirds of its life, and while it can still sign a whole serving
    /// certificate.
    pub fn authority_renewal(&self, authority: &CertificateId, signs_since: Timestamp) -> Timestamp {
        let by_life = renewal(signs_since, self.authority_life, &authority.fingerprint);
        by_life.min(after(authority.validity.not_after, -self.leaf_life))
    }

    /// From when on a serving certificate is in its last third.
    pub fn last_third(&self, leaf: &CertificateId) -> Timestamp {
        let Validity {
            not_before,
            not_after,
        } = leaf.validity;
        after(not_after, -(not_before.duration_until(not_after) / 3))
    }

    /// From when on there is no more time to wait for anything: the last sixth of a serving certificate's life.
    pub fn last_call(&self, leaf: &CertificateId) -> Timestamp {
        let Validity {
            not_before,
            not_after,
        } = leaf.validity;
        after(not_after, -(not_before.duration_until(not_after) / 6))
    }

    /// Whether a next CA can do its work: sign for a whole life, and no longer than was asked for. One whose first day
    /// has not come was made while the calendar was wrong, and waits.
    pub fn fits_next(&self, authority: &CertificateId, now: Timestamp) -> bool {
        let Validity {
            not_before,
            not_after,
        } = authority.validity;
        let longest = self
            .authority_life
            .saturating_mul(2)
            .saturating_add(self.tolerance())
            .saturating_add(self.authority_life / 100);
        not_before <= after(now, self.clock_tolerance)
            && not_after >= after(now, self.authority_life)
            && not_before.duration_until(not_after) <= longest
    }

    /// Whole seconds, because that is what certificates can say (RFC 5280, 4.1.2.5).
    fn validity(&self, now: Timestamp, life: SignedDuration) -> Validity {
        let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
        Validity {
            not_before: after(now, -self.tolerance()),
            not_after: after(now, life),
        }
    }
}

/// A moment that much later, or the end of time.
pub(super) fn after(moment: Timestamp, duration: SignedDuration) -> Timestamp {
    let end = if duration.is_negative() {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    };
    moment.checked_add(duration).unwrap_or(end)
}

/// After two thirds of a life, and up to a twentieth of it earlier: certificates that were issued together are not
/// renewed together.
fn renewal(start: Timestamp, life: SignedDuration, fingerprint: &Fingerprint) -> Timestamp {
    let share = i32::from(u16::from_be_bytes([fingerprint.0[0], fingerprint.0[1]]));
    let spread = life / 20 / i32::from(u16::MAX) * share;
    after(start, life / 3 * 2 - spread)
}
