//! The current time, as an argument that tests can replace.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// A source of the current time.
pub trait Clock: Send + Sync {
    /// Returns the current time.
    fn now(&self) -> Timestamp;

    /// Returns how far this machine's clock is ahead of this clock; `None` if unknown.
    fn ahead(&self) -> Option<SignedDuration> {
        None
    }
}

/// The clock of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

/// How often the calendar is compared with the steady clock.
const COMPARE_INTERVAL: Duration = Duration::from_secs(10);

/// The maximum drift in that time: more than slewing causes, and less than any wait by the calendar.
const MAX_DRIFT: SignedDuration = SignedDuration::from_secs(5);

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// Waits until the calendar jumps relative to the steady clock, which timers use: it was set, or the machine
/// was suspended, which stops the steady clock.
pub async fn wait_for_jump(clock: &dyn Clock) {
    wait_for_jump_between(clock, COMPARE_INTERVAL).await;
}

async fn wait_for_jump_between(clock: &dyn Clock, interval: Duration) {
    loop {
        let (calendar, steady) = (clock.now(), Instant::now());
        tokio::time::sleep(interval).await;
        let passed = SignedDuration::try_from(steady.elapsed()).unwrap_or(SignedDuration::MAX);
        let drift = calendar.duration_until(clock.now()).saturating_sub(passed);
        if drift.abs() > MAX_DRIFT {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;

    /// A calendar that follows tokio's clock, and can be set.
    struct Calendar {
        started: Instant,
        set_forward: Mutex<SignedDuration>,
    }

    impl Clock for Calendar {
        fn now(&self) -> Timestamp {
            let passed = SignedDuration::try_from(self.started.elapsed()).unwrap();
            Timestamp::UNIX_EPOCH + SignedDuration::from_hours(100_000) + passed + *self.set_forward.lock()
        }
    }

    #[tokio::test]
    async fn only_jumps_of_the_calendar_are_detected() {
        let calendar = Calendar {
            started: Instant::now(),
            set_forward: Mutex::default(),
        };
        let interval = Duration::from_millis(2);
        for hours in [24, -24] {
            let jumped = wait_for_jump_between(&calendar, interval);
            tokio::pin!(jumped);
            assert!(tokio::time::timeout(interval * 20, &mut jumped).await.is_err());
            *calendar.set_forward.lock() += SignedDuration::from_hours(hours);
            tokio::time::timeout(Duration::from_secs(60), jumped)
                .await
                .unwrap();
        }
    }
}
