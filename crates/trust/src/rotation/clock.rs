//! Two clocks: a wall clock for the validity of certificates, which may jump, and a monotonic clock for
//! waits.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// A reading of both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// The wall clock: that of the API server, which verifies certificates, or the operator's if that is
    /// unknown.
    pub now: Timestamp,
    /// The monotonic clock of this process, which measures waits.
    pub mark: Mark,
}

/// A time on the monotonic clock of one process. Another process knows of a stored mark only that it is in
/// the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Mark {
    /// The process: a random number from when it became the leader.
    pub run: u64,
    /// How long that process had been the leader.
    pub uptime: SignedDuration,
}

impl ClockReading {
    /// Returns the least possible time since `mark`. Jumps of the wall clock do not matter. For a mark of
    /// another process, this process's own start counts, because that process's clock ended with it.
    pub fn since(&self, mark: &Mark) -> SignedDuration {
        let elapsed = if self.mark.run == mark.run {
            self.mark.uptime.saturating_sub(mark.uptime)
        } else {
            self.mark.uptime
        };
        elapsed.max(SignedDuration::ZERO)
    }

    /// Returns what is left of a wait that began at `mark`; `None` if it is over.
    pub fn remaining(&self, mark: &Mark, wait: SignedDuration) -> Option<SignedDuration> {
        let left = wait.saturating_sub(self.since(mark));
        left.is_positive().then_some(left)
    }
}
