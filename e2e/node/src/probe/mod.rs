//! Probes: is a container started, alive, ready?

pub(crate) mod action;
mod threshold;

use std::time::Duration;

use k8s_openapi::api::core::v1::Probe;
use tokio::time::{MissedTickBehavior, interval_at, Instant};

use self::action::{Action, Target};
use crate::Options;

pub(crate) use threshold::Threshold;

/// However fast the node runs, a container is not asked more often.
const SHORTEST_PERIOD: Duration = Duration::from_millis(100);

/// One probe of a container, asked again and again.
#[derive(Debug)]
pub(crate) struct Prober {
    action: Action,
    timeout: Duration,
    delay: Duration,
    period: Duration,
    threshold: Threshold,
}

// === impl Prober ===

impl Prober {
    /// A probe as the spec has it, with the API's defaults; `passed` is what holds before the first answer.
    pub(crate) fn new(probe: &Probe, passed: bool, options: &Options) -> Self {
        let seconds = |value: Option<i32>, default: u64| {
            let value = value.and_then(|value| u64::try_from(value).ok()).filter(|value| *value > 0);
            Duration::from_secs(value.unwrap_or(default))
        };
        let count = |value: Option<i32>, default: u32| {
            value.and_then(|value| u32::try_from(value).ok()).filter(|value| *value > 0).unwrap_or(default)
        };
        Self {
            action: Action::of_probe(probe),
            timeout: seconds(probe.timeout_seconds, 1),
            delay: options.scaled(seconds(probe.initial_delay_seconds, 0)),
            period: options.scaled(seconds(probe.period_seconds, 10)).max(SHORTEST_PERIOD),
            threshold: Threshold::new(count(probe.success_threshold, 1), count(probe.failure_threshold, 3), passed),
        }
    }

    /// Asks until the answer counts as another than before: whether the probe passes now, and the last answer.
    pub(crate) async fn changed(&mut self, target: &Target<'_>, started: Instant) -> (bool, String) {
        let mut ticks = interval_at((started + self.delay).max(Instant::now()), self.period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let answer = match tokio::time::timeout(self.timeout, self.action.ask(target)).await {
                Ok(answer) => answer,
                Err(_) => Err(format!("no answer within {} s", self.timeout.as_secs())),
            };
            if let Some(passed) = self.threshold.count(answer.is_ok()) {
                return (passed, answer.err().unwrap_or_default());
            }
        }
    }
}
