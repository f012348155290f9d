//! A probe of a container, asked again and again.

use std::time::Duration;

use k8s_openapi::api::core::v1::Probe;
use tokio::time::{Instant, sleep_until, timeout};

use super::{
    action::{ProbeAction, ProbedContainer},
    threshold::Threshold,
};
use crate::NodeOptions;

/// However fast the node runs, a container is not asked more often.
const SHORTEST_PERIOD: Duration = Duration::from_millis(100);

/// A container that has never been ready is asked at least this often. Kubelet keeps to the period; here nobody shall
/// wait ten seconds for a server that was asked a moment too early.
const LONGEST_FIRST_PERIOD: Duration = Duration::from_millis(500);

/// One probe of a container, asked again and again.
#[derive(Debug)]
pub(crate) struct ProbeWorker {
    action: ProbeAction,
    timeout: Duration,
    period: Duration,
    next: Instant,
    threshold: Threshold,
    eager: bool,
}

impl ProbeWorker {
    /// A probe as the spec has it, with the API's defaults, of a container that has just started; `passed` is what holds
    /// before the first answer, if that is known.
    pub(crate) fn new(probe: &Probe, passed: Option<bool>, started: Instant, options: &NodeOptions) -> Self {
        let seconds = |value: Option<i32>, default: u64| {
            let value = value
                .and_then(|value| u64::try_from(value).ok())
                .filter(|value| *value > 0);
            Duration::from_secs(value.unwrap_or(default))
        };
        let count = |value: Option<i32>, default: u32| {
            value
                .and_then(|value| u32::try_from(value).ok())
                .filter(|value| *value > 0)
                .unwrap_or(default)
        };
        Self {
            action: ProbeAction::of_probe(probe),
            timeout: seconds(probe.timeout_seconds, 1),
            period: options
                .scaled(seconds(probe.period_seconds, 10))
                .max(SHORTEST_PERIOD),
            next: started + options.scaled(seconds(probe.initial_delay_seconds, 0)),
            threshold: Threshold::new(
                count(probe.success_threshold, 1),
                count(probe.failure_threshold, 3),
                passed,
            ),
            eager: false,
        }
    }

    /// Asks more often until it passes for the first time. Not for a probe whose failures have an effect by then.
    pub(crate) fn eagerly(mut self) -> Self {
        self.eager = true;
        self
    }

    /// Asks until the answer counts as another than before: whether the probe passes now, and the last answer.
    pub(crate) async fn changed(&mut self, target: &ProbedContainer<'_>) -> (bool, String) {
        loop {
            sleep_until(self.next).await;
            let longest = if self.eager {
                LONGEST_FIRST_PERIOD
            } else {
                Duration::MAX
            };
            self.next = Instant::now() + self.period.min(longest);
            let answer = match timeout(self.timeout, self.action.ask(target)).await {
                Ok(answer) => answer,
                Err(_) => Err(format!("no answer within {} s", self.timeout.as_secs())),
            };
            self.eager &= answer.is_err();
            if let Some(passed) = self.threshold.count(answer.is_ok()) {
                return (passed, answer.err().unwrap_or_default());
            }
        }
    }
}
