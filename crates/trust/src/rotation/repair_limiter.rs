//! Somebody else who takes the trust bundle from a target again and again, and how fast it is given back.
//!
//! Each target has a token bucket: it holds [`Timing::repair_burst`] repairs and gains one every
//! [`Timing::repair_interval`]. Whoever writes no faster than that finds each write repaired at once, for ever; whoever
//! writes faster does for as long as the bucket lasts, and is answered once in each interval from then on. So two
//! controllers that answer each other's writes cannot keep an API server busy, no target is given up, and a while of
//! quiet fills the bucket again.

use jiff::SignedDuration;

use crate::rotation::timing::Timing;

/// The token bucket of one target, and who empties it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairLimiter {
    repairs: u64,
    by: Option<String>,
    /// When, on the steady clock of this process, it was repaired last.
    repaired_at: SignedDuration,
    /// Until when, on the same clock, the bucket gains back what was taken.
    full_at: SignedDuration,
}

/// What is reported of a target that somebody else overwrites.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Contested {
    /// Who wrote the target, as far as its managed fields tell.
    pub by: Option<String>,
    /// How often it was repaired at the least: a power of two, so that not every repair changes what is reported.
    pub repairs: u64,
    /// How long until it may be repaired again; nothing, if it may now.
    pub wait: Option<SignedDuration>,
}

// === impl RepairLimiter ===

impl RepairLimiter {
    /// A target that was never repaired.
    pub const fn new() -> Self {
        Self {
            repairs: 0,
            by: None,
            repaired_at: SignedDuration::ZERO,
            full_at: SignedDuration::ZERO,
        }
    }

    /// The target was given back what `by` took from it.
    pub fn repaired(&mut self, by: Option<String>, uptime: SignedDuration, timing: &Timing) {
        self.repairs += 1;
        // Who takes a field away leaves no trace in the managed fields, but may have left one before.
        self.by = by.or(self.by.take());
        self.repaired_at = uptime;
        self.full_at = self.full_at.max(uptime).saturating_add(timing.repair_interval);
    }

    /// How long until the bucket holds a repair; nothing, if it does.
    pub fn wait(&self, uptime: SignedDuration, timing: &Timing) -> Option<SignedDuration> {
        let others = i32::try_from(timing.repair_burst.saturating_sub(1)).unwrap_or(i32::MAX);
        let reserve = timing.repair_interval.saturating_mul(others);
        let wait = self.full_at.saturating_sub(uptime).saturating_sub(reserve);
        wait.is_positive().then_some(wait)
    }

    /// Whether it was left alone for so long that it need not be remembered.
    pub fn is_over(&self, uptime: SignedDuration, timing: &Timing) -> bool {
        let quiet = uptime.saturating_sub(self.repaired_at);
        self.repairs > 0 && quiet >= timing.contested_ttl && self.full_at <= uptime
    }

    /// Whether the last repair is one to speak of: the first, and each that doubles their number.
    pub fn is_notable(&self) -> bool {
        self.repairs.is_power_of_two()
    }

    /// The greatest power of two that is not more than the repairs.
    fn doublings(&self) -> u64 {
        self.repairs.checked_ilog2().map_or(0, |doublings| 1 << doublings)
    }

    /// What to report; nothing before the first repair.
    pub fn report(&self, uptime: SignedDuration, timing: &Timing) -> Option<Contested> {
        (self.repairs > 0).then(|| Contested {
            by: self.by.clone(),
            repairs: self.doublings(),
            wait: self.wait(uptime, timing),
        })
    }
}

impl Default for RepairLimiter {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Display for RepairLimiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write_contested(f, self.by.as_deref(), self.doublings())
    }
}

// === impl Contested ===

impl std::fmt::Display for Contested {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write_contested(f, self.by.as_deref(), self.repairs)
    }
}

fn write_contested(f: &mut std::fmt::Formatter<'_>, by: Option<&str>, repairs: u64) -> std::fmt::Result {
    let by = by.unwrap_or("an unknown field manager");
    match repairs {
        0 | 1 => write!(f, "{by} has overwritten caBundle; restored it"),
        repairs => write!(
            f,
            "{by} has overwritten caBundle at least {repairs} times (restored each time); configure it to ignore the field"
        ),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: SignedDuration = SignedDuration::from_secs(1);

    /// Repairs what an actor does that writes so long after each repair or, where `reacts` is false, so often.
    fn fight(pause: SignedDuration, reacts: bool, seconds: i64) -> (u64, SignedDuration) {
        let timing = Timing::default();
        let mut limiter = RepairLimiter::new();
        let (mut now, mut longest) = (SignedDuration::ZERO, SignedDuration::ZERO);
        while now < SECOND * i32::try_from(seconds).unwrap() {
            let wait = limiter.wait(now, &timing).unwrap_or_default();
            longest = longest.max(wait);
            limiter.repaired(None, now + wait, &timing);
            now = if reacts {
                now + wait + pause
            } else {
                (now + pause).max(now + wait)
            };
        }
        (limiter.repairs, longest)
    }

    #[test]
    fn an_actor_that_writes_every_second_is_answered_at_once_for_ever() {
        for seconds in [60, 86_400] {
            assert_eq!(
                fight(SECOND, false, seconds),
                (seconds.unsigned_abs(), SignedDuration::ZERO)
            );
        }
    }

    #[test]
    fn an_actor_that_answers_at_once_is_answered_once_a_second_in_the_end() {
        let (repairs, longest) = fight(SignedDuration::from_millis(5), true, 3600);
        assert!((3600..=3600 + 61).contains(&repairs), "{repairs}");
        assert!(longest <= SECOND, "{longest:?}");
    }

    #[test]
    fn quiet_heals() {
        let timing = Timing::default();
        let mut limiter = RepairLimiter::new();
        for _ in 0..timing.repair_burst {
            assert_eq!(limiter.wait(SECOND, &timing), None);
            limiter.repaired(Some("argo".to_owned()), SECOND, &timing);
        }
        assert_eq!(limiter.wait(SECOND, &timing), Some(SECOND));
        let full = SECOND + timing.repair_interval * i32::try_from(timing.repair_burst).unwrap();
        assert!(!limiter.is_over(full, &timing));
        let mut again = limiter.clone();
        for _ in 0..timing.repair_burst {
            assert_eq!(again.wait(full, &timing), None);
            again.repaired(None, full, &timing);
        }
        assert_eq!(again.report(full, &timing).unwrap().by.as_deref(), Some("argo"));
        assert!(limiter.is_over(full + timing.contested_ttl, &timing));
    }

    #[test]
    fn what_is_reported_changes_only_when_the_repairs_double() {
        let timing = Timing::default();
        let mut limiter = RepairLimiter::new();
        assert_eq!(limiter.report(SECOND, &timing), None);
        let mut notable = 0;
        for number in 1..=1000 {
            limiter.repaired(None, SECOND * number, &timing);
            notable += u32::from(limiter.is_notable());
        }
        assert_eq!(notable, 10);
        assert_eq!(limiter.report(SECOND * 1000, &timing).unwrap().repairs, 512);
    }

    proptest! {
        /// However an actor writes: a target that was quiet is repaired at once, nobody waits longer than an interval,
        /// and in no stretch of time are there more repairs than the bucket holds and gains.
        #[test]
        fn repairs_are_bounded_and_never_stop(pauses in prop::collection::vec(0_i64..3000, 1..400)) {
            let timing = Timing::default();
            let mut limiter = RepairLimiter::new();
            let mut now = SignedDuration::from_hours(1);
            let mut times = Vec::new();
            prop_assert_eq!(limiter.wait(now, &timing), None);
            for pause in pauses {
                let wait = limiter.wait(now, &timing).unwrap_or_default();
                prop_assert!(wait <= timing.repair_interval);
                now += wait;
                prop_assert_eq!(limiter.wait(now, &timing), None);
                limiter.repaired(None, now, &timing);
                times.push(now);
                now += SignedDuration::from_millis(pause);
            }
            for (index, start) in times.iter().enumerate() {
                for (number, end) in (1..).zip(&times[index..]) {
                    let gained = (*end - *start).as_secs();
                    prop_assert!(i64::from(number) <= i64::from(timing.repair_burst) + gained + 1);
                }
            }
        }
    }
}
