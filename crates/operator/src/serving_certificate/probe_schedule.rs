//! Schedule of the TLS probes of endpoints. With more endpoints than one round probes, each gets its turn.
//! Endpoints that do not respond are probed less and less often, so that writers of EndpointSlices cannot
//! keep a worker busy. Until the next probe, the last result counts. All of it may be lost with the process.

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

/// The chain from a handshake, or why there is none.
pub(super) type Presentation = Result<Chain, String>;

/// Probe results of the ServingCertificates that have many endpoints, or endpoints that do not respond.
pub(super) struct ProbeSchedule {
    /// Time until the first retry of a port that does not respond.
    poll: Duration,
    looks: Mutex<HashMap<ObjectKey, ProbeHistory>>,
}

/// The ports of one round.
#[derive(Debug, Default)]
pub(super) struct ProbeRound {
    /// Ports to probe now.
    pub(super) due: Vec<Port>,
    /// Known results. Initially those of the ports that are not probed in this round.
    pub(super) seen: BTreeMap<Port, Presentation>,
    /// Ports that did not respond in time.
    pub(super) silent: BTreeSet<Port>,
}

#[derive(Default)]
struct ProbeHistory {
    count: u64,
    /// Whether one round cannot probe all ports.
    are_many: bool,
    /// Last round and result of each port. Empty if one round can probe all ports.
    ports: BTreeMap<Port, (u64, Presentation)>,
    silences: BTreeMap<Port, Silence>,
}

/// A period in which a port has not responded.
struct Silence {
    since: Instant,
    /// When the port is probed again.
    until: Instant,
    /// The failed result.
    seen: Presentation,
}

/// Maximum backoff of a port that does not respond, in polls.
const MAX_SILENCE_POLLS: u32 = 12;

impl ProbeSchedule {
    /// Creates an empty schedule. A port that does not respond is retried after `poll`, and then after as
    /// long as it has not responded.
    pub(super) fn new(poll: Duration) -> Self {
        Self {
            poll,
            looks: Mutex::default(),
        }
    }

    /// Returns which of `ports` to probe now, and the last results of the others.
    pub(super) fn next_round<'a>(
        &self,
        certificate: &ObjectKey,
        ports: impl Iterator<Item = &'a Port>,
    ) -> ProbeRound {
        let mut due: Vec<_> = ports.cloned().collect();
        due.sort_unstable();
        due.dedup();
        let mut schedule = self.looks.lock();
        let looks = schedule.entry(certificate.clone()).or_default();
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
            return ProbeRound {
                due,
                seen,
                ..ProbeRound::default()
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
        ProbeRound {
            due,
            seen,
            ..ProbeRound::default()
        }
    }

    /// Records the results of a round.
    pub(super) fn record(&self, certificate: &ObjectKey, round: &ProbeRound) {
        let mut schedule = self.looks.lock();
        let Some(looks) = schedule.get_mut(certificate) else {
            return;
        };
        looks.count += 1;
        let now = Instant::now();
        for port in &round.due {
            let Some(seen) = round.seen.get(port) else {
                continue;
            };
            if looks.are_many {
                looks.ports.insert(port.clone(), (looks.count, seen.clone()));
            }
            if !round.silent.contains(port) {
                looks.silences.remove(port);
                continue;
            }
            let since = looks.silences.get(port).map_or(now, |silence| silence.since);
            let pause = (now - since).clamp(self.poll, self.poll * MAX_SILENCE_POLLS);
            let silence = Silence {
                since,
                until: now + pause,
                seen: seen.clone(),
            };
            looks.silences.insert(port.clone(), silence);
        }
        // Keep no state for the usual case.
        if looks.silences.is_empty() && !looks.are_many {
            schedule.remove(certificate);
        }
    }

    /// Forgets a deleted ServingCertificate.
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
        fn every_endpoint_is_probed(count in 0..500_u16) {
            let (schedule, certificate) = (ProbeSchedule::new(POLL), kinds::SERVING_CERTIFICATE.object(Some("n"), "a"));
            let ports: Vec<_> = (0..count).map(port).collect();
            let mut dialled = BTreeSet::new();
            for _ in 0..usize::from(count).div_ceil(DIALS) {
                let mut round = schedule.next_round(&certificate, ports.iter().chain(&ports));
                prop_assert!(round.due.len() <= DIALS);
                prop_assert!(round.seen.keys().all(|port| dialled.contains(port)));
                dialled.extend(round.due.iter().cloned());
                for port in &round.due {
                    round.seen.insert(port.clone(), Err(port.address.to_string()));
                }
                schedule.record(&certificate, &round);
            }
            prop_assert_eq!(dialled.len(), ports.len());
            let again = schedule.next_round(&certificate, ports.iter());
            prop_assert_eq!(again.due.len() + again.seen.len(), ports.len());
            for (port, seen) in again.seen {
                prop_assert_eq!(seen, Err(port.address.to_string()));
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_unresponsive_port_is_probed_less_and_less_often() {
        let schedule = ProbeSchedule::new(POLL);
        let certificate = kinds::SERVING_CERTIFICATE.object(Some("n"), "a");
        let (silent, other) = (port(1), port(2));
        let look = |answers: bool| {
            let mut round = schedule.next_round(&certificate, [&silent, &other].into_iter());
            assert!(round.due.contains(&other));
            let is_due = round.due.contains(&silent);
            if is_due && !answers {
                round.silent.insert(silent.clone());
            }
            for port in round.due.clone() {
                round.seen.insert(port, Err("no answer".to_owned()));
            }
            assert_eq!(round.seen.len(), 2, "the last result counts until the next probe");
            schedule.record(&certificate, &round);
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
        tokio::time::sleep(POLL * MAX_SILENCE_POLLS).await;
        assert!(look(true));
        assert!(look(true), "it has responded");
        assert!(schedule.looks.lock().is_empty());
    }
}
