//! A moment, on two clocks.

use std::time::Duration;

use jiff::Timestamp;
use rustix::time::{ClockId, clock_gettime};

/// A moment, on two clocks of this machine.
///
/// One is steady and goes on while the machine is suspended: `CLOCK_BOOTTIME`, where [`std::time::Instant`] on Linux is
/// `CLOCK_MONOTONIC`, which does not. The other is the calendar. A virtual machine that was paused as a whole finds its
/// steady clocks where it left them; only the calendar, once it is set right, tells how long that was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Since the machine was started.
    pub since_boot: Duration,
    /// By the calendar, which may be wrong, and jump.
    pub wall: Timestamp,
}

/// The steady clock that goes on in suspend.
#[cfg(any(target_os = "linux", target_os = "android"))]
const STEADY: ClockId = ClockId::Boottime;

/// The steady clock, where none is known to go on in suspend.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const STEADY: ClockId = ClockId::Monotonic;

// === impl Moment ===

impl Moment {
    /// Now.
    pub fn now() -> Self {
        let steady = clock_gettime(STEADY);
        let seconds = u64::try_from(steady.tv_sec).unwrap_or_default();
        let nanoseconds = u32::try_from(steady.tv_nsec).unwrap_or_default();
        Self {
            since_boot: Duration::new(seconds, nanoseconds),
            wall: Timestamp::now(),
        }
    }

    /// So much later, on both clocks.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self {
            since_boot: self.since_boot.saturating_add(duration),
            wall: self.wall.checked_add(duration).unwrap_or(Timestamp::MAX),
        }
    }

    /// Whether this moment has come by `now`, on either clock.
    pub fn has_passed(self, now: Self) -> bool {
        now.since_boot >= self.since_boot || now.wall >= self.wall
    }
}
