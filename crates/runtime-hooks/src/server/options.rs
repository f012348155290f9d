//! What a server says of a handler, and how much it asks of it.

use std::time::Duration;

use crate::discovery::FailurePolicy;

/// How a handler is to be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerOptions {
    /// How long its callers wait, 0 to 30. Where nothing or 0 is said, they wait for 10.
    pub timeout_seconds: Option<i32>,
    /// What a call that fails means to its callers; [`FailurePolicy::Fail`] where nothing is said.
    pub failure_policy: Option<FailurePolicy>,
    /// How many calls are under way at a time, at least 1. Others wait, and their bodies are not read meanwhile.
    pub concurrency: usize,
}

/// The longest timeout of a handler, in seconds.
pub(super) const LONGEST_TIMEOUT: u8 = 30;

/// The timeout of a handler that names none, in seconds.
const DEFAULT_TIMEOUT: u8 = 10;

// === impl HandlerOptions ===

impl HandlerOptions {
    /// How long a call may take whose caller does not say for how long it waits.
    pub(super) fn timeout(&self) -> Duration {
        let seconds = self
            .timeout_seconds
            .and_then(|seconds| u64::try_from(seconds).ok());
        Duration::from_secs(
            seconds
                .filter(|seconds| *seconds > 0)
                .unwrap_or(DEFAULT_TIMEOUT.into()),
        )
    }
}

impl Default for HandlerOptions {
    fn default() -> Self {
        Self {
            timeout_seconds: None,
            failure_policy: None,
            concurrency: 64,
        }
    }
}
