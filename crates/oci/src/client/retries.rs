//! Retries of requests.

use std::time::Duration;

use super::{RegistryError, RegistryOptions};

/// The number and delays of retries.
pub(super) struct Retries {
    left: u32,
    pause: Duration,
    longest: Duration,
}

impl Retries {
    pub(super) fn new(options: &RegistryOptions) -> Self {
        Self {
            left: options.attempts.saturating_sub(1),
            pause: options.backoff,
            longest: options.longest_wait,
        }
    }

    /// Waits before the next attempt; returns the error if a retry is pointless.
    pub(super) async fn wait(&mut self, error: RegistryError) -> Result<(), RegistryError> {
        if self.left == 0 || !error.is_transient() {
            return Err(error);
        }
        // Registries that request a delay penalize earlier requests.
        let wait = match error.retry_after() {
            Some(after) if after > self.longest => return Err(error),
            Some(after) => after.max(self.pause),
            None => self.pause.min(self.longest),
        };
        self.left -= 1;
        self.pause = self.pause.saturating_mul(2);
        tokio::time::sleep(wait).await;
        Ok(())
    }
}
