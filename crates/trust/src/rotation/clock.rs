//! Two clocks: the calendar, which certificates are about and which may jump, and a steady one, which waits are about.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// What the clocks say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// The calendar: best the API server's, which verifies, and the operator's own only where that is unknown.
    pub now: Timestamp,
    /// The steady clock of this process, which tells how long waits have lasted.
    pub mark: Mark,
}

/// A moment on the steady clock of one process. Written down, it tells a later process nothing but "before you".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Mark {
    /// The process: a number drawn when it started to lead.
    pub run: u64,
    /// How long that process had been leading.
    pub uptime: SignedDuration,
}

// === impl ClockReading ===

impl ClockReading {
    /// How long ago that was at the least. No jump of the calendar makes it longer; a new process counts from its
    /// own start, because the old one's steady clock ended with it.
    pub fn since(&self, mark: &Mark) -> SignedDuration {
        let elapsed = if self.mark.run == mark.run {
            self.mark.uptime.saturating_sub(mark.uptime)
        } else {
            self.mark.uptime
        };
        elapsed.max(SignedDuration::ZERO)
    }

    /// What is left of a wait that began there; nothing, if it is over.
    pub fn remaining(&self, mark: &Mark, wait: SignedDuration) -> Option<SignedDuration> {
        let left = wait.saturating_sub(self.since(mark));
        left.is_positive().then_some(left)
    }
}
