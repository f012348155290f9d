//! Whose turn it is to be dialled. Where there are more endpoints than are dialled in one look, one after the other has its
//! turn, and who does not answer at all is dialled less and less often: whoever writes EndpointSlices could keep a worker busy.
//! What was seen before stands in for who has to wait; it may be lost with the process.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;
use windlass_object::ObjectKey;
use windlass_trust::rotation::Chain;

use crate::servers::{DIALS, Port};

/// What a handshake showed; or why there was none.
pub(super) type Presentation = Result<Chain, String>;

/// What was seen of the endpoints of each ServingCertificate that has very many, or some that do not answer.
pub(super) struct DialTurns {
    /// How soon what did not answer is dialled again.
    poll: Duration,
    looks: Mutex<HashMap<ObjectKey, Looks>>,
}

/// The ports of one look.
#[derive(Debug, Default)]
pub(super) struct Dials {
    /// Those to dial.
    pub(super) due: Vec<Port>,
    /// What is known of ports: to begin with, of those that are not dialled.
    pub(super) seen: BTreeMap<Port, Presentation>,
    /// Those of which no answer came in time.
    pub(super) silent: BTreeSet<Port>,
}

#[derive(Default)]
struct Looks {
    count: u64,
    /// Whether there were more than are dialled in one look.
    are_many: bool,
    /// In which look each port was dialled last, and what was seen; nothing, where they are not many.
    ports: BTreeMap<Port, (u64, Presentation)>,
    silences: BTreeMap<Port, Silence>,
}

/// How long a port has not answered.
struct Silence {
    since: Instant,
    /// Until when it is not dialled again.
    until: Instant,
    /// What came of dialling it.
    seen: Presentation,
}

/// How many polls a port is not dialled at the most because it did not answer.
const LONGEST_SILENCE: u32 = 12;

// === impl DialTurns ===

impl DialTurns {
    /// Nothing was seen yet. What does not answer is dialled again after `poll`, and then after as long as it has not.
    pub(super) fn new(poll: Duration) -> Self {
        Self {
            poll,
            looks: Mutex::default(),
        }
    }

    /// Those of `ports` that are to be dialled now, and what was seen of the others.
    pub(super) fn choose<'a>(&self, certificate: &ObjectKey, ports: impl Iterator<Item = &'a Port>) -> Dials {
        let mut due: Vec<_> = ports.cloned().collect();
        due.sort_unstable();
        due.dedup();
        let mut turns = self.looks.lock();
        let looks = turns.entry(certificate.clone()).or_default();
        looks.ports.retain(|port, _| due.binary_search(port).is_ok());
        looks.silences.retain(|port, _| due.binary_search(port).is_ok());
        let now = Instant::now();
        let mut seen = BTreeMap::new();
        due.retain(|port| {
            let silence = looks.silences.get(port).filter(|silence| now < silence.until);
            seen.extend(silence.map(|silence| (port.clone(), silence.seen.clone())));
            silence.is_none()
        });
        looks.are_many = due.len() > DIALS;
        if !looks.are_many {
            looks.ports.clear();
            return Dials {
                due,
                seen,
                ..Dials::default()
            };
        }
        due.sort_by_key(|port| {
            Reverse(
                looks
                    .ports
                    .get(port)
                    .map_or(u64::MAX, |(look, _)| looks.count - look),
            )
        });
        let later = due.split_off(DIALS);
        let known = later.into_iter().filter_map(|port| {
            let (_, seen) = looks.ports.get(&port)?;
            Some((port, seen.clone()))
        });
        seen.extend(known);
        Dials {
            due,
            seen,
            ..Dials::default()
        }
    }

    /// Notes what was seen.
    pub(super) fn note(&self, certificate: &ObjectKey, dials: &Dials) {
        let mut turns = self.looks.lock();
        let Some(looks) = turns.get_mut(certificate) else {
            return;
        };
        looks.count += 1;
        let now = Instant::now();
        for port in &dials.due {
            let Some(seen) = dials.seen.get(port) else {
                continue;
            };
            if looks.are_many {
                looks.ports.insert(port.clone(), (looks.count, seen.clone()));
            }
            if !dials.silent.contains(port) {
                looks.silences.remove(port);
                continue;
            }
            let since = looks.silences.get(port).map_or(now, |silence| silence.since);
            let pause = (now - since).clamp(self.poll, self.poll * LONGEST_SILENCE);
            let silence = Silence {
                since,
                until: now + pause,
                seen: seen.clone(),
            };
            looks.silences.insert(port.clone(), silence);
        }
        // Of most there is nothing to remember.
        if looks.silences.is_empty() && !looks.are_many {
            turns.remove(certificate);
        }
    }

    /// Forgets a ServingCertificate that is gone.
    pub(super) fn forget(&self, certificate: &ObjectKey) {
        self.looks.lock().remove(certificate);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use windlass_cluster::kinds;

    use super::*;

    const POLL: Duration = Duration::from_secs(5);

    fn port(number: u16) -> Port {
        Port {
            address: ([10, 0, 0, 1], number).into(),
            pod: None,
        }
    }

    proptest! {
        #[test]
        fn every_endpoint_has_its_turn(count in 0..500_u16) {
            let (turns, certificate) = (DialTurns::new(POLL), kinds::SERVING_CERTIFICATE.object(Some("n"), "a"));
            let ports: Vec<_> = (0..count).map(port).collect();
            let mut dialled = BTreeSet::new();
            for _ in 0..usize::from(count).div_ceil(DIALS) {
                let mut dials = turns.choose(&certificate, ports.iter().chain(&ports));
                prop_assert!(dials.due.len() <= DIALS);
                prop_assert!(dials.seen.keys().all(|port| dialled.contains(port)));
                dialled.extend(dials.due.iter().cloned());
                for port in &dials.due {
                    dials.seen.insert(port.clone(), Err(port.address.to_string()));
                }
                turns.note(&certificate, &dials);
            }
            prop_assert_eq!(dialled.len(), ports.len());
            let again = turns.choose(&certificate, ports.iter());
            prop_assert_eq!(again.due.len() + again.seen.len(), ports.len());
            for (port, seen) in again.seen {
                prop_assert_eq!(seen, Err(port.address.to_string()));
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_answer_is_dialled_less_and_less_often() {
        let turns = DialTurns::new(POLL);
        let certificate = kinds::SERVING_CERTIFICATE.object(Some("n"), "a");
        let (silent, other) = (port(1), port(2));
        let look = |answers: bool| {
            let mut dials = turns.choose(&certificate, [&silent, &other].into_iter());
            assert!(dials.due.contains(&other));
            let is_due = dials.due.contains(&silent);
            if is_due && !answers {
                dials.silent.insert(silent.clone());
            }
            for port in dials.due.clone() {
                dials.seen.insert(port, Err("no answer".to_owned()));
            }
            assert_eq!(dials.seen.len(), 2, "what was seen before stands in for it");
            turns.note(&certificate, &dials);
            is_due
        };
        let begun = Instant::now();
        let mut dialled = Vec::new();
        while begun.elapsed() < Duration::from_secs(600) {
            if look(false) {
                dialled.push(begun.elapsed().as_secs());
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        assert_eq!(dialled[..6], [0, 5, 10, 20, 40, 80]);
        assert!(
            dialled[6..].windows(2).all(|pair| pair[1] - pair[0] == 60),
            "{dialled:?}"
        );
        tokio::time::sleep(POLL * LONGEST_SILENCE).await;
        assert!(look(true));
        assert!(look(true), "it has answered");
        assert!(turns.looks.lock().is_empty());
    }
}
