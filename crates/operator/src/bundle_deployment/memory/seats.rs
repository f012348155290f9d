//! What the API server has said of the Services that webhooks call.

use std::{collections::HashMap, time::Duration};

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use windlass_cluster::endpoints::Endpoint;

use crate::install::proof::SeatFinding;

/// What was found out last, by BundleDeployment and by the name of the question.
#[derive(Default)]
pub(in crate::bundle_deployment) struct Seats(Mutex<HashMap<String, HashMap<String, Seen>>>);

struct Seen {
    /// Those to which the Service led then.
    endpoints: Vec<Endpoint>,
    finding: SeatFinding,
    at: Timestamp,
    /// How long it is believed, if it is bad.
    pause: Duration,
}

/// The first pause before a question with a bad answer is asked again. Each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_secs(5);

/// The longest.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

impl Seats {
    /// Forgets a BundleDeployment that is gone.
    pub(in crate::bundle_deployment) fn forget(&self, name: &str) {
        self.0.lock().remove(name);
    }

    /// What was found out about the same endpoints, while it is believed.
    pub(in crate::bundle_deployment) fn find(
        &self,
        name: &str,
        question: &str,
        endpoints: &[Endpoint],
        now: Timestamp,
    ) -> Option<SeatFinding> {
        let seats = self.0.lock();
        let seen = seats.get(name)?.get(question)?;
        let age = now.duration_since(seen.at);
        let pause = SignedDuration::try_from(seen.pause).unwrap_or_default();
        let is_believed =
            seen.finding == SeatFinding::Reached || (SignedDuration::ZERO..pause).contains(&age);
        (is_believed && seen.endpoints == endpoints).then(|| seen.finding.clone())
    }

    /// Notes what was found out.
    pub(in crate::bundle_deployment) fn add(
        &self,
        name: &str,
        question: &str,
        endpoints: &[Endpoint],
        finding: SeatFinding,
        now: Timestamp,
    ) {
        let mut seats = self.0.lock();
        let seats = seats.entry(name.to_owned()).or_default();
        let bad = seats
            .get(question)
            .filter(|seen| seen.finding != SeatFinding::Reached && seen.endpoints == endpoints);
        let pause = bad.map_or(FIRST_PAUSE, |seen| (seen.pause * 2).min(LONGEST_PAUSE));
        let seen = Seen {
            endpoints: endpoints.to_vec(),
            finding,
            at: now,
            pause,
        };
        seats.insert(question.to_owned(), seen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoints(address: &str) -> Vec<Endpoint> {
        vec![Endpoint {
            address: address.parse().unwrap(),
            pod: None,
        }]
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn what_was_reached_is_not_asked_again_while_the_endpoints_are_the_same() {
        let seats = Seats::default();
        let (one, other) = (endpoints("10.0.0.1:9443"), endpoints("10.0.0.2:9443"));
        seats.add("d", "q", &one, SeatFinding::Reached, at(0));
        assert_eq!(seats.find("d", "q", &one, at(90_000)), Some(SeatFinding::Reached));
        assert_eq!(seats.find("d", "q", &other, at(0)), None);
        assert_eq!(seats.find("d", "p", &one, at(0)), None);
        assert_eq!(seats.find("e", "q", &one, at(0)), None);
        seats.forget("d");
        assert_eq!(seats.find("d", "q", &one, at(0)), None);
    }

    #[test]
    fn a_bad_answer_is_believed_for_a_pause_that_grows() {
        let seats = Seats::default();
        let one = endpoints("10.0.0.1:9443");
        let bad = || SeatFinding::Unreachable("refused".into());
        let mut asked = Vec::new();
        for second in 0..300 {
            if seats.find("d", "q", &one, at(second)).is_none() {
                asked.push(second);
                seats.add("d", "q", &one, bad(), at(second));
            }
        }
        assert_eq!(asked, [0, 5, 15, 35, 75, 135, 195, 255]);
        // A clock that was ahead does not silence it.
        assert_eq!(seats.find("d", "q", &one, at(200)), None);
    }
}
