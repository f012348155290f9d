//! A point in time on two clocks.

use std::time::Duration;

use jiff::Timestamp;
use rustix::time::{ClockId, clock_gettime};

/// A point in time on two clocks of this machine.
///
/// One is steady and advances while the machine is suspended: `CLOCK_BOOTTIME`, whereas
/// [`std::time::Instant`] on Linux is `CLOCK_MONOTONIC`, which does not. The other is the calendar. The
/// steady clocks of a paused virtual machine do not advance; only the calendar, once it is corrected, shows
/// how long the pause was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The time since the machine was started.
    pub since_boot: Duration,
    /// The time by the calendar, which may be wrong, and jump.
    pub wall: Timestamp,
}

/// The steady clock that advances during suspend.
#[cfg(any(target_os = "linux", target_os = "android"))]
const STEADY_CLOCK: ClockId = ClockId::Boottime;

/// The steady clock of other systems.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const STEADY_CLOCK: ClockId = ClockId::Monotonic;

impl Moment {
    /// Returns the current time.
    pub fn now() -> Self {
        let steady = clock_gettime(STEADY_CLOCK);
        let seconds = u64::try_from(steady.tv_sec).unwrap_or_default();
        let nanoseconds = u32::try_from(steady.tv_nsec).unwrap_or_default();
        Self {
            since_boot: Duration::new(seconds, nanoseconds),
            wall: Timestamp::now(),
        }
    }

    /// Adds a duration on both clocks.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self {
            since_boot: self.since_boot.saturating_add(duration),
            wall: self.wall.checked_add(duration).unwrap_or(Timestamp::MAX),
        }
    }

    /// Reports whether this moment is in the past at `now`, on either clock.
    pub fn has_passed(self, now: Self) -> bool {
        now.since_boot >= self.since_boot || now.wall >= self.wall
    }
}
