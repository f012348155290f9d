//! The condition about the operator's clock. Certificates follow the API server's clock, and an administrator
//! has to fix a difference.

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::install::status::ConditionUpdate;

/// The condition, which is set once the clocks were found to differ.
pub(super) const CLOCK_SYNCHRONIZED: &str = "ClockSynchronized";

/// Tolerated difference: `Date` headers have no fractions, and responses take time.
const TOLERANCE: SignedDuration = SignedDuration::from_secs(60);

/// Returns the condition for a clock that is `ahead` of the API server's clock, or `None` if it never
/// differed.
pub(super) fn assess(ahead: Option<SignedDuration>, known: &[Condition]) -> Option<ConditionUpdate> {
    let ahead = ahead?;
    if ahead.abs() > TOLERANCE {
        // In minutes, so that the message does not change every second.
        let minutes = SignedDuration::from_mins(ahead.abs().as_mins());
        let direction = if ahead.is_positive() { "ahead of" } else { "behind" };
        let message = format!(
            "the operator's clock is {minutes:#} {direction} the API server's clock, which determines when certificates are issued and renewed: synchronize the clocks of the nodes"
        );
        return Some(ConditionUpdate::fails("ClockSkewed", message));
    }
    let was_off = known
        .iter()
        .any(|condition| condition.type_ == CLOCK_SYNCHRONIZED);
    was_off.then(|| {
        let message =
            format!("the clocks of the operator and the API server differ by at most {TOLERANCE:#}");
        ConditionUpdate::holds("Synchronized", message)
    })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::install::status::Conditions;

    #[test]
    fn the_condition_states_the_clock_difference_until_it_is_gone() {
        let mut conditions = Vec::new();
        let mut say = |ahead: Option<i64>| {
            let update = assess(ahead.map(SignedDuration::from_secs), &conditions);
            let found = update.clone().map(|update| (update.status, update.message));
            if let Some(update) = update {
                conditions.record(CLOCK_SYNCHRONIZED, update, None, Timestamp::UNIX_EPOCH);
            }
            found
        };
        assert_eq!(say(None), None);
        assert_eq!(say(Some(-60)), None);
        let (status, message) = say(Some(2430)).unwrap();
        assert_eq!(status, "False");
        assert!(
            message.contains("is 40m ahead of the API server's clock"),
            "{message}"
        );
        let (_, message) = say(Some(-3900)).unwrap();
        assert!(
            message.contains("is 1h 5m behind the API server's clock"),
            "{message}"
        );
        assert_eq!(say(Some(3)).unwrap().0, "True");
    }
}
