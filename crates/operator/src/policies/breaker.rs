//! Takes out a policy that fails at whatever it is asked about, and tries it again after growing pauses.

use std::{fmt, time::Duration};

use policy::{FailureReason, PolicyFailure};
use tokio::time::Instant;

/// Whether a policy is asked, by how it fared before. A new generation of it starts with a new one.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    /// How many failures in a row there were.
    failures: u32,
    suspension: Option<Suspension>,
}

/// At what a policy failed when it was taken out. What failed is told without its message, which may have data of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SuspensionCause {
    rule: Option<usize>,
    reason: FailureReason,
}

#[derive(Debug)]
struct Suspension {
    cause: SuspensionCause,
    pause: Duration,
    /// When it is tried next.
    until: Instant,
    /// Whether a request tries it.
    is_tried: bool,
}

/// How many failures in a row take a policy out.
const FAILURES: u32 = 20;

/// The pause before it is tried for the first time; each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_secs(5);

/// The longest pause: alerts on failures look back for longer, and go on while they are only tried.
const LONGEST_PAUSE: Duration = Duration::from_secs(5 * 60);

// === impl Breaker ===

impl Breaker {
    /// Whether a request asks the policy at `now`. Of one that is out, one request does after each pause.
    pub(super) fn asks(&mut self, now: Instant) -> bool {
        let Some(suspension) = &mut self.suspension else {
            return true;
        };
        if now < suspension.until {
            return false;
        }
        // The next one does if this one never tells what came of it.
        suspension.until = now + suspension.pause;
        suspension.is_tried = true;
        true
    }

    /// The policy did not fail at a request. Whether it is back by that.
    pub(super) fn succeeded(&mut self) -> bool {
        self.failures = 0;
        self.suspension.take().is_some()
    }

    /// The policy failed at a request. Whether it is out by that.
    pub(super) fn failed(&mut self, cause: SuspensionCause, now: Instant) -> bool {
        match &mut self.suspension {
            Some(suspension) if suspension.is_tried => {
                suspension.pause = (suspension.pause * 2).min(LONGEST_PAUSE);
                suspension.until = now + suspension.pause;
                suspension.is_tried = false;
                false
            }
            // It was asked before it was taken out.
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
                    is_tried: false,
                });
                true
            }
        }
    }

    /// Why the policy is out, if it is.
    pub(super) fn suspended(&self) -> Option<SuspensionCause> {
        self.suspension.as_ref().map(|suspension| suspension.cause)
    }
}

// === impl SuspensionCause ===

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
            FailureReason::Policy => "what is wrong with it".to_owned(),
            FailureReason::Selection => "selecting the object".to_owned(),
            FailureReason::Reference => "reading what it refers to".to_owned(),
            FailureReason::Step(step) => step.to_string(),
            FailureReason::Deadline => "the time for the request".to_owned(),
        };
        let rule = self.rule.map(|rule| format!("rule {rule}: ")).unwrap_or_default();
        write!(
            formatter,
            "not asked, since it failed at {FAILURES} requests in a row, the last time at {rule}{at}: see the log, and mend it; \
             it is tried again after pauses of up to {} minutes",
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

    fn taken_out(now: Instant) -> Breaker {
        let mut breaker = Breaker::default();
        for count in 1..=FAILURES {
            assert!(breaker.asks(now));
            assert_eq!(breaker.failed(CAUSE, now), count == FAILURES);
        }
        breaker
    }

    #[test]
    fn one_request_tries_it_after_each_pause_and_pauses_grow() {
        let mut now = Instant::now();
        let mut breaker = taken_out(now);
        let mut pause = FIRST_PAUSE;
        for _ in 0..10 {
            assert!(!breaker.asks(now + pause - Duration::from_millis(1)));
            now += pause;
            assert!(breaker.asks(now), "{pause:?}");
            assert!(!breaker.asks(now), "one is enough");
            assert!(!breaker.failed(CAUSE, now));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        assert_eq!(pause, LONGEST_PAUSE);
        assert!(breaker.asks(now + pause));
        assert!(breaker.succeeded(), "it is back");
        assert!(!breaker.succeeded() && breaker.asks(now));
    }

    #[test]
    fn requests_that_were_under_way_make_no_pause_longer() {
        let now = Instant::now();
        let mut breaker = taken_out(now);
        for _ in 0..100 {
            assert!(!breaker.failed(CAUSE, now));
        }
        assert!(breaker.asks(now + FIRST_PAUSE));
    }

    #[test]
    fn a_request_that_never_tells_is_followed_by_another() {
        let now = Instant::now();
        let mut breaker = taken_out(now);
        assert!(breaker.asks(now + FIRST_PAUSE));
        assert!(breaker.asks(now + 2 * FIRST_PAUSE));
    }

    #[test]
    fn one_success_among_failures_keeps_it_in() {
        let now = Instant::now();
        let mut breaker = Breaker::default();
        for _ in 0..10 {
            for _ in 1..FAILURES {
                assert!(!breaker.failed(CAUSE, now));
            }
            assert!(!breaker.succeeded());
        }
        assert_eq!(breaker.suspended(), None);
    }

    #[derive(Clone, Copy, Debug)]
    enum Happening {
        Asked,
        Failed,
        Succeeded,
        Passed(u64),
    }

    fn happening() -> impl Strategy<Value = Happening> {
        prop_oneof![
            4 => Just(Happening::Asked),
            30 => Just(Happening::Failed),
            1 => Just(Happening::Succeeded),
            4 => (0..400_u64).prop_map(Happening::Passed),
        ]
    }

    proptest! {
        #[test]
        fn who_succeeds_is_never_out_and_who_is_out_has_failed_in_a_row(happenings in prop::collection::vec(happening(), 0..200)) {
            let mut now = Instant::now();
            let mut breaker = Breaker::default();
            let mut in_a_row = 0;
            let mut last_try: Option<Instant> = None;
            for happening in happenings {
                match happening {
                    Happening::Asked => {
                        let asks = breaker.asks(now);
                        prop_assert!(asks || breaker.suspended().is_some());
                        if asks && breaker.suspended().is_some() {
                            prop_assert!(last_try.is_none_or(|last| now >= last + FIRST_PAUSE), "two within a pause");
                            last_try = Some(now);
                        }
                    }
                    Happening::Failed => {
                        in_a_row += 1;
                        breaker.failed(CAUSE, now);
                    }
                    Happening::Succeeded => {
                        in_a_row = 0;
                        last_try = None;
                        breaker.succeeded();
                        prop_assert!(breaker.suspended().is_none() && breaker.asks(now));
                    }
                    Happening::Passed(seconds) => now += Duration::from_secs(seconds),
                }
                prop_assert_eq!(breaker.suspended().is_some(), in_a_row >= FAILURES);
                // However it fared, it is tried again.
                if let Some(suspension) = &breaker.suspension {
                    prop_assert!(suspension.until <= now + LONGEST_PAUSE);
                }
            }
        }
    }
}
