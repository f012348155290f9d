//! Limits how fast Windlass restores a trust bundle that another controller repeatedly removes from a target.
//!
//! Each target has a token bucket: it holds [`Timing::repair_burst`] repairs and gains one per
//! [`Timing::repair_interval`]. A writer that is not faster than the interval is always repaired immediately.
//! A faster writer is repaired immediately until the bucket is empty, and once per interval from then on. So
//! two controllers that react to each other cannot overload an API server, no target is given up, and a quiet
//! period refills the bucket.

use jiff::SignedDuration;

use crate::rotation::timing::Timing;

/// The token bucket of one target, and who empties it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairLimiter {
    repairs: u64,
    by: Option<String>,
    /// When it was last repaired, on the monotonic clock of this process.
    repaired_at: SignedDuration,
    /// When the bucket is full again, on the same clock.
    full_at: SignedDuration,
}

/// A target that another controller overwrites, as reported.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Contested {
    /// The field manager that wrote the target, if managed fields show one.
    pub by: Option<String>,
    /// Lower bound of the number of repairs: a power of two, so that not every repair changes the report.
    pub repairs: u64,
    /// How long until the next repair is allowed; `None` if it is allowed now.
    pub wait: Option<SignedDuration>,
}

impl RepairLimiter {
    /// Creates the limiter of a target that was never repaired.
    pub const fn new() -> Self {
        Self {
            repairs: 0,
            by: None,
            repaired_at: SignedDuration::ZERO,
            full_at: SignedDuration::ZERO,
        }
    }

    /// Records a repair after `by` removed the trust bundle.
    pub fn record_repair(&mut self, by: Option<String>, uptime: SignedDuration, timing: &Timing) {
        self.repairs += 1;
        // Removing a field leaves no trace in managed fields, but an earlier write may have.
        self.by = by.or(self.by.take());
        self.repaired_at = uptime;
        self.full_at = self.full_at.max(uptime).saturating_add(timing.repair_interval);
    }

    /// Returns how long until a repair is allowed; `None` if it is allowed now.
    pub fn wait(&self, uptime: SignedDuration, timing: &Timing) -> Option<SignedDuration> {
        let others = i32::try_from(timing.repair_burst.saturating_sub(1)).unwrap_or(i32::MAX);
        let reserve = timing.repair_interval.saturating_mul(others);
        let wait = self.full_at.saturating_sub(uptime).saturating_sub(reserve);
        wait.is_positive().then_some(wait)
    }

    /// Reports whether the target was quiet for so long that the limiter can be dropped.
    pub fn is_over(&self, uptime: SignedDuration, timing: &Timing) -> bool {
        let quiet = uptime.saturating_sub(self.repaired_at);
        self.repairs > 0 && quiet >= timing.contested_ttl && self.full_at <= uptime
    }

    /// Reports whether to report the last repair: the first one, and each that doubles their number.
    pub fn is_notable(&self) -> bool {
        self.repairs.is_power_of_two()
    }

    /// Returns the greatest power of two that is at most the number of repairs.
    fn rounded_repairs(&self) -> u64 {
        self.repairs.checked_ilog2().map_or(0, |doublings| 1 << doublings)
    }

    /// Returns what to report; `None` before the first repair.
    pub fn report(&self, uptime: SignedDuration, timing: &Timing) -> Option<Contested> {
        (self.repairs > 0).then(|| Contested {
            by: self.by.clone(),
            repairs: self.rounded_repairs(),
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
        write_contested(f, self.by.as_deref(), self.rounded_repairs())
    }
}

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

    /// Simulates an actor that overwrites `pause` after each repair, or periodically if `reacts` is false.
    fn fight(pause: SignedDuration, reacts: bool, seconds: i64) -> (u64, SignedDuration) {
        let timing = Timing::default();
        let mut limiter = RepairLimiter::new();
        let (mut now, mut longest) = (SignedDuration::ZERO, SignedDuration::ZERO);
        while now < SECOND * i32::try_from(seconds).unwrap() {
            let wait = limiter.wait(now, &timing).unwrap_or_default();
            longest = longest.max(wait);
            limiter.record_repair(None, now + wait, &timing);
            now = if reacts {
                now + wait + pause
            } else {
                (now + pause).max(now + wait)
            };
        }
        (limiter.repairs, longest)
    }

    #[test]
    fn a_writer_of_one_change_per_second_is_always_repaired_immediately() {
        for seconds in [60, 86_400] {
            assert_eq!(
                fight(SECOND, false, seconds),
                (seconds.unsigned_abs(), SignedDuration::ZERO)
            );
        }
    }

    #[test]
    fn an_immediate_rewriter_is_eventually_repaired_once_per_second() {
        let (repairs, longest) = fight(SignedDuration::from_millis(5), true, 3600);
        assert!((3600..=3600 + 61).contains(&repairs), "{repairs}");
        assert!(longest <= SECOND, "{longest:?}");
    }

    #[test]
    fn a_quiet_period_resets_the_limit() {
        let timing = Timing::default();
        let mut limiter = RepairLimiter::new();
        for _ in 0..timing.repair_burst {
            assert_eq!(limiter.wait(SECOND, &timing), None);
            limiter.record_repair(Some("argo".to_owned()), SECOND, &timing);
        }
        assert_eq!(limiter.wait(SECOND, &timing), Some(SECOND));
        let full = SECOND + timing.repair_interval * i32::try_from(timing.repair_burst).unwrap();
        assert!(!limiter.is_over(full, &timing));
        let mut again = limiter.clone();
        for _ in 0..timing.repair_burst {
            assert_eq!(again.wait(full, &timing), None);
            again.record_repair(None, full, &timing);
        }
        assert_eq!(again.report(full, &timing).unwrap().by.as_deref(), Some("argo"));
        assert!(limiter.is_over(full + timing.contested_ttl, &timing));
    }

    #[test]
    fn reports_change_only_when_repairs_double() {
        let timing = Timing::default();
        let mut limiter = RepairLimiter::new();
        assert_eq!(limiter.report(SECOND, &timing), None);
        let mut notable = 0;
        for number in 1..=1000 {
            limiter.record_repair(None, SECOND * number, &timing);
            notable += u32::from(limiter.is_notable());
        }
        assert_eq!(notable, 10);
        assert_eq!(limiter.report(SECOND * 1000, &timing).unwrap().repairs, 512);
    }

    proptest! {
        /// For any writer: after a quiet period the repair is immediate, no wait exceeds the interval, and in
        /// no period are there more repairs than the bucket holds and gains.
        #[test]
        fn repairs_are_rate_limited_but_never_stop(pauses in prop::collection::vec(0_i64..3000, 1..400)) {
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
                limiter.record_repair(None, now, &timing);
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
