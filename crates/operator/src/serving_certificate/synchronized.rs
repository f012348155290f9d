//! What is said of the operator's clock: certificates go by the API server's, and a difference is for somebody to mend.

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::install::status::ConditionUpdate;

/// The condition. It is there once the clocks were seen to differ.
pub(super) const CLOCK_SYNCHRONIZED: &str = "ClockSynchronized";

/// By how much the clocks may differ: Dates have no fractions, and answers take their time.
const TOLERANCE: SignedDuration = SignedDuration::from_secs(60);

/// What to say, where the clock of this machine is so much `ahead` of the API server's; nothing, if it never was off.
pub(super) fn assess(ahead: Option<SignedDuration>, known: &[Condition]) -> Option<ConditionUpdate> {
    let ahead = ahead?;
    if ahead.abs() > TOLERANCE {
        // In minutes, so that not every second is news.
        let minutes = SignedDuration::from_mins(ahead.abs().as_mins());
        let direction = if ahead.is_positive() { "ahead of" } else { "behind" };
        let message = format!(
            "the operator's clock is {minutes:#} {direction} the API server's, by which certificates are issued and renewed: synchronize the clocks of the nodes"
        );
        return Some(ConditionUpdate::fails("ClockSkewed", message));
    }
    let was_off = known
        .iter()
        .any(|condition| condition.type_ == CLOCK_SYNCHRONIZED);
    was_off.then(|| {
        let message = format!("the operator's clock and the API server's differ by at most {TOLERANCE:#}");
        ConditionUpdate::holds("Synchronized", message)
    })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::install::status::Conditions;

    #[test]
    fn clocks_that_differ_are_named_with_the_figure_until_they_do_not() {
        let mut conditions = Vec::new();
        let mut say = |ahead: Option<i64>| {
            let update = assess(ahead.map(SignedDuration::from_secs), &conditions);
            let said = update.clone().map(|update| (update.status, update.message));
            if let Some(update) = update {
                conditions.record(CLOCK_SYNCHRONIZED, update, None, Timestamp::UNIX_EPOCH);
            }
            said
        };
        assert_eq!(say(None), None);
        assert_eq!(say(Some(-60)), None);
        let (status, message) = say(Some(2430)).unwrap();
        assert_eq!(status, "False");
        assert!(message.contains("is 40m ahead of the API server's"), "{message}");
        let (_, message) = say(Some(-3900)).unwrap();
        assert!(message.contains("is 1h 5m behind the API server's"), "{message}");
        assert_eq!(say(Some(3)).unwrap().0, "True");
    }
}
