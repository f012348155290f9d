//! How long a container that ended waits before it is started again.

use std::time::Duration;

/// A kubelet starts at ten seconds; nobody wants to wait that long for a demo.
const FIRST: Duration = Duration::from_secs(1);

/// The longest wait.
const LONGEST: Duration = Duration::from_secs(30);

/// A container that ran this long is healthy again.
const HEALTHY: Duration = Duration::from_secs(600);

/// Doubles with every restart. The first restart comes at once.
#[derive(Debug, Default)]
pub(crate) struct BackOff {
    last: Option<Duration>,
}

impl BackOff {
    /// The wait after a container that ran for so long.
    pub(crate) fn after(&mut self, ran: Duration) -> Duration {
        let wait = match self.last {
            None => Duration::ZERO,
            Some(_) if ran >= HEALTHY => Duration::ZERO,
            Some(last) if last.is_zero() => FIRST,
            Some(last) => (last * 2).min(LONGEST),
        };
        self.last = Some(wait);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_start_over_after_a_healthy_run() {
        let mut back_off = BackOff::default();
        let mut waits = || back_off.after(Duration::ZERO).as_secs();
        assert_eq!(
            [waits(), waits(), waits(), waits(), waits(), waits(), waits()],
            [0, 1, 2, 4, 8, 16, 30]
        );
        assert_eq!(back_off.after(HEALTHY), Duration::ZERO);
        assert_eq!(back_off.after(Duration::ZERO), FIRST);
    }
}
