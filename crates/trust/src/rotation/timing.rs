//! All durations of a rotation.

use jiff::{SignedDuration, Timestamp};
use thiserror::Error;

use crate::{
    pki::Validity,
    rotation::certificate::{CertificateId, Fingerprint},
};

/// The durations of a rotation. The first two are in the spec; the others are parameters, so that tests and
/// the demo can scale them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Lifetime of a serving certificate.
    pub leaf_life: SignedDuration,
    /// How long a CA signs, from its first signature until it expires.
    pub authority_life: SignedDuration,
    /// From reading back a target with a CA until every API server trusts that CA.
    pub trust: SignedDuration,
    /// From writing a certificate to the Secret until a server that reloads its files serves it.
    pub reload: SignedDuration,
    /// From writing a certificate to the Secret until every starting pod mounts it.
    pub overlap: SignedDuration,
    /// How wrong a wall clock may be, the operator's or an API server's; see [`Timing::tolerance`].
    pub clock_tolerance: SignedDuration,
    /// How often to check endpoints while waiting for them.
    pub poll: SignedDuration,
    /// How often to retry a target that rejected a write.
    pub retry: SignedDuration,
    /// The longest time without planning, because the wall clock may jump.
    pub longest_sleep: SignedDuration,
    /// How many repairs of a target may happen without delay; see [`super::RepairLimiter`].
    pub repair_burst: u32,
    /// Interval of repairs of a target beyond the burst.
    pub repair_interval: SignedDuration,
    /// After how long without a repair a contested target is forgotten.
    pub contested_ttl: SignedDuration,
}

/// Why nothing can be issued with these durations.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the message explains each field")]
pub enum TimingProblem {
    /// CAs would be replaced faster than the certificates they sign.
    #[error(
        "ca.duration must be at least twice as long as duration: {authority_life:#} is less than twice {leaf_life:#}"
    )]
    AuthorityTooShort {
        authority_life: SignedDuration,
        /// The serving certificate's lifetime.
        leaf_life: SignedDuration,
    },
    /// A renewed certificate would be loaded too late.
    #[error(
        "duration must be at least {least:#}, because a server may take the last third of it to read a renewed certificate: {leaf_life:#} is less"
    )]
    LeafTooShort {
        /// The requested lifetime.
        leaf_life: SignedDuration,
        /// The shortest allowed lifetime.
        least: SignedDuration,
    },
}

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
    /// Scales all waits. Lifetimes come from users, and clock tolerance and repair limits do not depend on
    /// waits: these stay.
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

    /// Returns all invalid durations.
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

    /// Returns how wrong a wall clock may be. Certificates become valid that much before issuance and count
    /// as expired that much after notAfter. At most a sixth of the lifetime.
    pub fn tolerance(&self) -> SignedDuration {
        self.clock_tolerance.min(self.leaf_life / 6)
    }

    /// Returns from when on a certificate with this end has expired by any wall clock.
    pub fn expired_by_any_clock(&self, end: Timestamp) -> Timestamp {
        after(end, self.tolerance())
    }

    /// Returns the shortest lifetime of a serving certificate that leaves servers time to load the next one.
    pub fn shortest_leaf_life(&self) -> SignedDuration {
        let until_served = self.trust.saturating_add(self.reload).saturating_add(self.poll);
        until_served.saturating_mul(3)
    }

    /// Returns the validity of a CA that is issued now: one lifetime while the previous CA signs, and its
    /// own.
    pub fn authority_validity(&self, now: Timestamp) -> Validity {
        self.validity(now, self.authority_life.saturating_mul(2))
    }

    /// Returns the validity of a serving certificate that this CA issues now. It never outlives the CA.
    pub fn leaf_validity(&self, now: Timestamp, authority: &CertificateId) -> Validity {
        self.validity(now, self.leaf_life)
            .capped(authority.validity.not_after)
    }

    /// Returns when a serving certificate is renewed: after two thirds of its lifetime.
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

    /// Reports whether a serving certificate was issued for a longer lifetime than now in the spec.
    pub fn exceeds_lifetime(&self, leaf: &CertificateId, now: Timestamp) -> bool {
        let longest = self.leaf_life.saturating_add(self.clock_tolerance);
        leaf.validity.not_after > after(now, longest)
    }

    /// Returns when a CA is replaced: after two thirds of its lifetime, and while it can still sign a serving
    /// certificate of full lifetime.
    pub fn authority_renewal(&self, authority: &CertificateId, signs_since: Timestamp) -> Timestamp {
        let by_life = renewal(signs_since, self.authority_life, &authority.fingerprint);
        by_life.min(after(authority.validity.not_after, -self.leaf_life))
    }

    /// Returns when the last third of a serving certificate's lifetime begins.
    pub fn last_third(&self, leaf: &CertificateId) -> Timestamp {
        let Validity {
            not_before,
            not_after,
        } = leaf.validity;
        after(not_after, -(not_before.duration_until(not_after) / 3))
    }

    /// Returns when the last sixth of a serving certificate's lifetime begins. From then on no wait is
    /// acceptable.
    pub fn last_sixth(&self, leaf: &CertificateId) -> Timestamp {
        let Validity {
            not_before,
            not_after,
        } = leaf.validity;
        after(not_after, -(not_before.duration_until(not_after) / 6))
    }

    /// Reports whether a next CA is usable: it can sign for a whole lifetime, and no longer than the spec
    /// says. One with a future notBefore was created with a wrong wall clock and is not usable yet.
    pub fn is_usable_next(&self, authority: &CertificateId, now: Timestamp) -> bool {
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

    /// Rounds to whole seconds, as in certificates (RFC 5280, 4.1.2.5).
    fn validity(&self, now: Timestamp, life: SignedDuration) -> Validity {
        let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
        Validity {
            not_before: after(now, -self.tolerance()),
            not_after: after(now, life),
        }
    }
}

/// Adds a duration, saturating at the largest timestamp.
pub(super) fn after(moment: Timestamp, duration: SignedDuration) -> Timestamp {
    let end = if duration.is_negative() {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    };
    moment.checked_add(duration).unwrap_or(end)
}

/// After two thirds of the lifetime, minus up to a twentieth, so that certificates issued together are not
/// renewed together.
fn renewal(start: Timestamp, life: SignedDuration, fingerprint: &Fingerprint) -> Timestamp {
    let share = i32::from(u16::from_be_bytes([fingerprint.0[0], fingerprint.0[1]]));
    let spread = life / 20 / i32::from(u16::MAX) * share;
    after(start, life / 3 * 2 - spread)
}
