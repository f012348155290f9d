//! Suspends a policy whose evaluation keeps failing, and retries it after growing pauses.

use std::{fmt, time::Duration};

use policy::{FailureReason, PolicyFailure};
use tokio::time::Instant;

/// Decides whether a policy is evaluated, by the results of its earlier evaluations. Each generation of a
/// policy gets a new breaker.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    /// Failures in a row.
    failures: u32,
    suspension: Option<Suspension>,
}

/// The failure that suspended a policy. It has no message, since a message may contain data of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SuspensionCause {
    rule: Option<usize>,
    reason: FailureReason,
}

#[derive(Debug)]
struct Suspension {
    cause: SuspensionCause,
    pause: Duration,
    /// When the policy is retried next.
    until: Instant,
    /// Whether a request is retrying the policy now.
    is_retrying: bool,
}

/// The number of failures in a row that suspends a policy.
const FAILURES: u32 = 20;

/// The pause before the first retry; each further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(5);

/// The longest pause. Alerts on failures look back further than this, so they keep firing while the policy is
/// only retried.
const LONGEST_PAUSE: Duration = Duration::from_secs(5 * 60);

impl Breaker {
    /// Reports whether a request at `now` evaluates the policy. While it is suspended, one request per pause
    /// does.
    pub(super) fn allows(&mut self, now: Instant) -> bool {
        let Some(suspension) = &mut self.suspension else {
            return true;
        };
        if now < suspension.until {
            return false;
        }
        // If this request never reports a result, the next pause still ends with a retry.
        suspension.until = now + suspension.pause;
        suspension.is_retrying = true;
        true
    }

    /// Records a success. Returns whether it ends a suspension.
    pub(super) fn record_success(&mut self) -> bool {
        self.failures = 0;
        self.suspension.take().is_some()
    }

    /// Records a failure. Returns whether it suspends the policy.
    pub(super) fn record_failure(&mut self, cause: SuspensionCause, now: Instant) -> bool {
        match &mut self.suspension {
            Some(suspension) if suspension.is_retrying => {
                suspension.pause = (suspension.pause * 2).min(LONGEST_PAUSE);
                suspension.until = now + suspension.pause;
                suspension.is_retrying = false;
                false
            }
            // This evaluation started before the suspension.
            Some(_) => false,
            None => {
                self.failures += 1;
                if self.failures < FAILURES {
                    return false;
                }
                self.suspension = Some(Suspension {
                    cause,
                    pause: FIRST_PAUSE,
                    until: now + FIRST_PAUSE,
                    is_retrying: false,
                });
                true
            }
        }
    }

    /// Returns the cause of the suspension; `None` if the policy is not suspended.
    pub(super) fn cause(&self) -> Option<SuspensionCause> {
        self.suspension.as_ref().map(|suspension| suspension.cause)
    }
}

impl From<&PolicyFailure> for SuspensionCause {
    fn from(failure: &PolicyFailure) -> Self {
        Self {
            rule: failure.rule,
            reason: failure.reason,
        }
    }
}

impl fmt::Display for SuspensionCause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = match self.reason {
            FailureReason::Policy => "invalid policy".to_owned(),
            FailureReason::Selection => "selecting the object".to_owned(),
            FailureReason::Reference => "reading referenced data".to_owned(),
            FailureReason::Step(step) => step.to_string(),
            FailureReason::Deadline => "the time limit of the request ran out".to_owned(),
        };
        let rule = self.rule.map(|rule| format!("rule {rule}: ")).unwrap_or_default();
        write!(
            formatter,
            "suspended after {FAILURES} failed requests in a row; last failure: {rule}{at}; see the log and fix the policy; it is retried after pauses of up to {} minutes",
            LONGEST_PAUSE.as_secs() / 60
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CAUSE: SuspensionCause = SuspensionCause {
        rule: Some(0),
        reason: FailureReason::Policy,
    };

    fn suspended_breaker(now: Instant) -> Breaker {
        let mut breaker = Breaker::default();
        for count in 1..=FAILURES {
            assert!(breaker.allows(now));
            assert_eq!(breaker.record_failure(CAUSE, now), count == FAILURES);
        }
        breaker
    }

    #[test]
    fn one_request_retries_after_each_pause_and_pauses_grow() {
        let mut now = Instant::now();
        let mut breaker = suspended_breaker(now);
        let mut pause = FIRST_PAUSE;
        for _ in 0..10 {
            assert!(!breaker.allows(now + pause - Duration::from_millis(1)));
            now += pause;
            assert!(breaker.allows(now), "{pause:?}");
            assert!(!breaker.allows(now), "a single request retries the policy");
            assert!(!breaker.record_failure(CAUSE, now));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        assert_eq!(pause, LONGEST_PAUSE);
        assert!(breaker.allows(now + pause));
        assert!(breaker.record_success(), "a success ends the suspension");
        assert!(!breaker.record_success() && breaker.allows(now));
    }

    #[test]
    fn running_requests_do_not_extend_a_pause() {
        let now = Instant::now();
        let mut breaker = suspended_breaker(now);
        for _ in 0..100 {
            assert!(!breaker.record_failure(CAUSE, now));
        }
        assert!(breaker.allows(now + FIRST_PAUSE));
    }

    #[test]
    fn a_retry_without_a_result_is_followed_by_another() {
        let now = Instant::now();
        let mut breaker = suspended_breaker(now);
        assert!(breaker.allows(now + FIRST_PAUSE));
        assert!(breaker.allows(now + 2 * FIRST_PAUSE));
    }

    #[test]
    fn one_success_resets_the_count_of_failures() {
        let now = Instant::now();
        let mut breaker = Breaker::default();
        for _ in 0..10 {
            for _ in 1..FAILURES {
                assert!(!breaker.record_failure(CAUSE, now));
            }
            assert!(!breaker.record_success());
        }
        assert_eq!(breaker.cause(), None);
    }

    #[derive(Clone, Copy, Debug)]
    enum EvaluationEvent {
        Asked,
        Failed,
        Succeeded,
        Passed(u64),
    }

    fn evaluation_event() -> impl Strategy<Value = EvaluationEvent> {
        prop_oneof![
            4 => Just(EvaluationEvent::Asked),
            30 => Just(EvaluationEvent::Failed),
            1 => Just(EvaluationEvent::Succeeded),
            4 => (0..400_u64).prop_map(EvaluationEvent::Passed),
        ]
    }

    proptest! {
        #[test]
        fn only_failures_in_a_row_suspend_a_policy(events in prop::collection::vec(evaluation_event(), 0..200)) {
            let mut now = Instant::now();
            let mut breaker = Breaker::default();
            let mut failures_in_a_row = 0;
            let mut last_try: Option<Instant> = None;
            for event in events {
                match event {
                    EvaluationEvent::Asked => {
                        let asks = breaker.allows(now);
                        prop_assert!(asks || breaker.cause().is_some());
                        if asks && breaker.cause().is_some() {
                            prop_assert!(last_try.is_none_or(|last| now >= last + FIRST_PAUSE), "two retries within a pause");
                            last_try = Some(now);
                        }
                    }
                    EvaluationEvent::Failed => {
                        failures_in_a_row += 1;
                        breaker.record_failure(CAUSE, now);
                    }
                    EvaluationEvent::Succeeded => {
                        failures_in_a_row = 0;
                        last_try = None;
                        breaker.record_success();
                        prop_assert!(breaker.cause().is_none() && breaker.allows(now));
                    }
                    EvaluationEvent::Passed(seconds) => now += Duration::from_secs(seconds),
                }
                prop_assert_eq!(breaker.cause().is_some(), failures_in_a_row >= FAILURES);
                // A suspended policy is always retried eventually.
                if let Some(suspension) = &breaker.suspension {
                    prop_assert!(suspension.until <= now + LONGEST_PAUSE);
                }
            }
        }
    }
}
