//! Whose turn it is to be dialled, where there are more endpoints than are dialled in one look: whoever writes EndpointSlices
//! could keep a worker busy. What was seen before stands in for who has to wait; it may be lost with the process.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    net::SocketAddr,
};

use parking_lot::Mutex;
use windlass_object::ObjectKey;
use windlass_trust::rotation::Chain;

/// What a handshake showed; or why there was none.
pub(super) type Presentation = Result<Chain, String>;

/// What was seen of the endpoints of each ServingCertificate that has very many.
#[derive(Default)]
pub(super) struct DialTurns(Mutex<HashMap<ObjectKey, Looks>>);

/// A port of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Port {
    /// Where to dial.
    pub(super) address: SocketAddr,
    /// The uid of the pod behind it: another pod may have the address next.
    pub(super) pod: Option<String>,
}

/// The ports of one look.
#[derive(Debug, Default)]
pub(super) struct Dials {
    /// Those to dial.
    pub(super) due: Vec<Port>,
    /// What is known of ports: to begin with, of those that are not dialled.
    pub(super) seen: BTreeMap<Port, Presentation>,
}

#[derive(Default)]
struct Looks {
    count: u64,
    /// In which look each port was dialled last, and what was seen.
    ports: BTreeMap<Port, (u64, Presentation)>,
}

/// How many ports are dialled in one look.
const DIALS: usize = 100;

// === impl DialTurns ===

impl DialTurns {
    /// Those of `ports` that are to be dialled now, and what was seen of the others.
    pub(super) fn choose<'a>(&self, certificate: &ObjectKey, ports: impl Iterator<Item = &'a Port>) -> Dials {
        let mut due: Vec<_> = ports.cloned().collect();
        due.sort_unstable();
        due.dedup();
        let mut turns = self.0.lock();
        if due.len() <= DIALS {
            turns.remove(certificate);
            return Dials {
                due,
                ..Dials::default()
            };
        }
        let looks = turns.entry(certificate.clone()).or_default();
        looks.ports.retain(|port, _| due.binary_search(port).is_ok());
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
        Dials {
            seen: known.collect(),
            due,
        }
    }

    /// Notes what was seen.
    pub(super) fn note(&self, certificate: &ObjectKey, dials: &Dials) {
        let mut turns = self.0.lock();
        let Some(looks) = turns.get_mut(certificate) else {
            return;
        };
        looks.count += 1;
        for port in &dials.due {
            if let Some(seen) = dials.seen.get(port) {
                looks.ports.insert(port.clone(), (looks.count, seen.clone()));
            }
        }
    }

    /// Forgets a ServingCertificate that is gone.
    pub(super) fn forget(&self, certificate: &ObjectKey) {
        self.0.lock().remove(certificate);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use windlass_cluster::kinds;

    use super::*;

    fn port(number: u16) -> Port {
        Port {
            address: ([10, 0, 0, 1], number).into(),
            pod: None,
        }
    }

    proptest! {
        #[test]
        fn every_endpoint_has_its_turn(count in 0..500_u16) {
            let (turns, certificate) = (DialTurns::default(), kinds::SERVING_CERTIFICATE.object(Some("n"), "a"));
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
}
