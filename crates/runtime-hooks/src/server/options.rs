//! Options of handlers.

use std::time::Duration;

use crate::discovery::FailurePolicy;

/// How a handler is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerOptions {
    /// The timeout for callers in seconds, 0 to 30. 0 and `None` mean 10.
    pub timeout_seconds: Option<i32>,
    /// The failure policy for callers; the default is [`FailurePolicy::Fail`].
    pub failure_policy: Option<FailurePolicy>,
    /// The maximum number of concurrent calls, at least 1. The bodies of waiting requests are not read.
    pub concurrency: usize,
}

/// The longest timeout of a handler, in seconds.
pub(super) const LONGEST_TIMEOUT: u8 = 30;

/// The default timeout of a handler, in seconds.
const DEFAULT_TIMEOUT: u8 = 10;

impl HandlerOptions {
    /// The timeout of a call whose caller does not send one.
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
