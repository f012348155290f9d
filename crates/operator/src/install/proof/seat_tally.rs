//! What several answers of the API server say together.

use super::{
    seat_answer::{Obstacle, SeatAnswer},
    seat_probe::SeatProbe,
};

/// What was found out from the API server's seat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeatFinding {
    /// It gets through TLS to a server.
    Reached,
    /// It does not. Why not, and what to do.
    Unreachable(String),
    /// It cannot be asked. Why not, and what to do.
    Undecided(String),
}

/// How many answers in a row must agree that a server is reached: there may be several API servers, each of which hears of a
/// configuration by itself.
const AGREEING: usize = 3;

/// How many answers in a row must agree that none is.
const AGREEING_FAILURES: usize = 2;

/// The most answers that are waited for, where they do not agree.
const MOST_ANSWERS: usize = 12;

/// How often an API server is asked that has not heard of the configuration.
const MOST_UNHEARD: usize = 100;

/// How the answers of a question went so far.
#[derive(Debug, Default)]
pub struct SeatTally {
    reached: usize,
    unreached: usize,
    answers: usize,
    unheard: usize,
}

impl SeatTally {
    /// Takes note of an answer. What is found out, once enough of them agree.
    pub fn count(&mut self, answer: SeatAnswer, probe: &SeatProbe) -> Option<SeatFinding> {
        self.answers += 1;
        match answer {
            SeatAnswer::Reached => {
                (self.reached, self.unreached) = (self.reached + 1, 0);
                (self.reached >= AGREEING).then_some(SeatFinding::Reached)
            }
            SeatAnswer::Unreachable { obstacle, words } => {
                (self.reached, self.unreached) = (0, self.unreached + 1);
                let agree = self.unreached >= AGREEING_FAILURES || self.answers >= MOST_ANSWERS;
                agree.then(|| SeatFinding::Unreachable(unreachable(obstacle, &words)))
            }
            SeatAnswer::Passed => {
                // It is no answer of one that has heard of it.
                self.answers -= 1;
                (self.reached, self.unheard) = (0, self.unheard + 1);
                (self.unheard >= MOST_UNHEARD).then(|| SeatFinding::Undecided(unheard(probe)))
            }
            SeatAnswer::Unrelated { words } => Some(SeatFinding::Undecided(format!(
                "the API server rejects ConfigMap {}/{}, which Windlass sends to test the connection and never stores: {words}",
                probe.own_namespace, probe.name
            ))),
        }
    }
}

fn unreachable(obstacle: Obstacle, words: &str) -> String {
    format!("{words}; {obstacle}")
}

fn unheard(probe: &SeatProbe) -> String {
    format!(
        "it does not call the webhook of ValidatingWebhookConfiguration {}: check that nothing changes this configuration or excludes ConfigMaps of the namespace {} from webhooks",
        probe.name, probe.own_namespace
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe() -> SeatProbe {
        SeatProbe::new("d", "windlass-system", ("n", "s", 443), "QQ==".into())
    }

    fn silence() -> SeatAnswer {
        SeatAnswer::Unreachable {
            obstacle: Obstacle::Silence,
            words: "context deadline exceeded".into(),
        }
    }

    /// What is found out, and after how many answers.
    fn found(answers: impl IntoIterator<Item = SeatAnswer>) -> Option<(usize, SeatFinding)> {
        let mut tally = SeatTally::default();
        let probe = probe();
        answers
            .into_iter()
            .enumerate()
            .find_map(|(index, answer)| Some((index + 1, tally.count(answer, &probe)?)))
    }

    #[test]
    fn several_answers_in_a_row_must_agree() {
        use SeatAnswer::{Passed, Reached};
        let reached = |after| Some((after, SeatFinding::Reached));
        assert_eq!(found([Reached, Reached, Reached]), reached(3));
        assert_eq!(found([Reached, Reached]), None);
        // One API server has not heard of it yet.
        assert_eq!(found([Reached, Reached, Passed, Reached, Reached]), None);
        assert_eq!(found([Passed, Passed, Reached, Reached, Reached]), reached(5));
        // One of several gets through.
        let alternating = (0..40).map(|index| if index % 2 == 0 { Reached } else { silence() });
        let (after, finding) = found(alternating).unwrap();
        assert!(
            after <= MOST_ANSWERS && matches!(finding, SeatFinding::Unreachable(_)),
            "{after}"
        );
        let (after, finding) = found([silence(), silence()]).unwrap();
        assert_eq!(after, AGREEING_FAILURES);
        let SeatFinding::Unreachable(why) = finding else {
            panic!("{finding:?}");
        };
        assert!(
            why.starts_with("context deadline exceeded; usually a firewall"),
            "{why}"
        );
    }

    #[test]
    fn what_is_never_called_or_refused_by_others_is_not_decided() {
        let never = found(std::iter::repeat_n(SeatAnswer::Passed, 1000));
        assert!(
            matches!(never, Some((100, SeatFinding::Undecided(why))) if why.contains("windlass-probe-d-"))
        );
        let words = "no ConfigMaps here".to_owned();
        let refused = found([SeatAnswer::Unrelated { words }]);
        assert!(
            matches!(refused, Some((1, SeatFinding::Undecided(why))) if why.ends_with("no ConfigMaps here"))
        );
    }
}
