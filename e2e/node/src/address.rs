//! Addresses: one pod one address, reused as late as possible.

use std::{
    collections::VecDeque,
    fmt, io,
    net::{Ipv4Addr, UdpSocket},
    str::FromStr,
    sync::Arc,
};

use parking_lot::Mutex;

/// The UDP port whose socket says that an address is taken, so that nodes side by side on one machine never give out
/// the same one. The port of the kubelet, which no pod has.
const CLAIM_PORT: u16 = 10250;

/// An IPv4 network in CIDR notation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    base: u32,
    prefix: u8,
}

/// A text is no IPv4 network that has room for a node and a pod.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an IPv4 network such as 127.244.0.0/16, with a prefix of 1 to 29")]
pub struct ParseNetworkError(String);

/// The addresses that pods may have.
#[derive(Debug)]
pub(crate) struct Pool {
    network: Network,
    queue: Mutex<Queue>,
}

/// Addresses as distances from the network's base.
#[derive(Debug)]
struct Queue {
    /// Where the fresh ones start: nodes side by side seldom meet.
    offset: u32,
    /// How many fresh ones were given out.
    used: u32,
    released: VecDeque<u32>,
}

/// An address that is a pod's until this is dropped.
#[derive(Debug)]
pub(crate) struct AddressClaim<T = UdpSocket> {
    pub(crate) ip: Ipv4Addr,
    distance: u32,
    pool: Arc<Pool>,
    _guard: T,
}

impl Network {
    /// The network of an address; `prefix` is held to 1 to 29 bits.
    pub fn new(address: Ipv4Addr, prefix: u8) -> Self {
        let prefix = prefix.clamp(1, 29);
        Self {
            base: address.to_bits() & (u32::MAX << (32 - prefix)),
            prefix,
        }
    }

    /// The node's own address: the first.
    pub fn host(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.base + 1)
    }

    /// Checks that its addresses are this machine's, or this network namespace's.
    ///
    /// # Errors
    ///
    /// When nobody can listen on them.
    pub fn check_local(self) -> io::Result<()> {
        UdpSocket::bind((self.host(), 0)).map(drop)
    }

    /// How many addresses are left for pods: all but the network's, the node's and the last.
    fn pods(self) -> u32 {
        (1_u32 << (32 - self.prefix)) - 3
    }

    fn pod(self, distance: u32) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.base + 2 + distance)
    }
}

impl FromStr for Network {
    type Err = ParseNetworkError;

    fn from_str(text: &str) -> Result<Self, ParseNetworkError> {
        let error = || ParseNetworkError(text.to_owned());
        let (address, prefix) = text.split_once('/').ok_or_else(error)?;
        let address: Ipv4Addr = address.parse().map_err(|_| error())?;
        let prefix = prefix
            .parse()
            .ok()
            .filter(|prefix| (1..=29).contains(prefix))
            .ok_or_else(error)?;
        Ok(Self::new(address, prefix))
    }
}

impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", Ipv4Addr::from_bits(self.base), self.prefix)
    }
}

impl Pool {
    /// A pool that starts somewhere in the network, as `seed` says.
    pub(crate) fn new(network: Network, seed: u32) -> Arc<Self> {
        let queue = Queue {
            offset: seed % network.pods(),
            used: 0,
            released: VecDeque::new(),
        };
        Arc::new(Self {
            network,
            queue: Mutex::new(queue),
        })
    }

    /// Claims an address on this machine. Fails when all are taken, or none is local.
    pub(crate) fn claim(self: &Arc<Self>) -> io::Result<AddressClaim> {
        self.claim_by(|ip| UdpSocket::bind((ip, CLAIM_PORT)))
    }

    fn claim_by<T>(
        self: &Arc<Self>,
        mut bind: impl FnMut(Ipv4Addr) -> io::Result<T>,
    ) -> io::Result<AddressClaim<T>> {
        let mut queue = self.queue.lock();
        for _ in 0..self.network.pods() {
            let Some(distance) = queue.next(self.network.pods()) else {
                break;
            };
            let ip = self.network.pod(distance);
            match bind(ip) {
                Ok(guard) => {
                    return Ok(AddressClaim {
                        ip,
                        distance,
                        pool: self.clone(),
                        _guard: guard,
                    });
                }
                Err(error) => {
                    queue.released.push_back(distance);
                    if error.kind() != io::ErrorKind::AddrInUse {
                        return Err(error);
                    }
                }
            }
        }
        Err(io::Error::new(
            io::ErrorKind::AddrInUse,
            format!("every address of {} is taken", self.network),
        ))
    }
}

impl Queue {
    fn next(&mut self, size: u32) -> Option<u32> {
        if self.used == size {
            return self.released.pop_front();
        }
        let distance = (u64::from(self.offset) + u64::from(self.used)) % u64::from(size);
        self.used += 1;
        u32::try_from(distance).ok()
    }
}

impl<T> Drop for AddressClaim<T> {
    fn drop(&mut self) {
        self.pool.queue.lock().released.push_back(self.distance);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn small() -> Network {
        "127.9.0.0/29".parse().unwrap()
    }

    fn free(_: Ipv4Addr) -> io::Result<()> {
        Ok(())
    }

    #[test]
    fn networks_are_read_and_written() {
        assert_eq!(
            "10.244.7.9/16".parse::<Network>().unwrap().to_string(),
            "10.244.0.0/16"
        );
        for wrong in [
            "",
            "10.0.0.0",
            "10.0.0.0/30",
            "10.0.0.0/0",
            "10.0.0/8",
            "::/64",
            "10.0.0.0/x",
        ] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_address_is_reused_only_when_all_others_were_used() {
        let pool = Pool::new(small(), 3);
        let first = pool.claim_by(free).unwrap().ip;
        let others: Vec<_> = (0..4).map(|_| pool.claim_by(free).unwrap()).collect();
        assert!(others.iter().all(|claim| claim.ip != first));
        assert_eq!(pool.claim_by(free).unwrap().ip, first);
    }

    #[test]
    fn an_address_that_another_node_has_is_left_alone() {
        let pool = Pool::new(small(), 0);
        let taken = small().pod(0);
        let bind = |ip| {
            if ip == taken {
                Err(io::ErrorKind::AddrInUse.into())
            } else {
                Ok(())
            }
        };
        let claims: Vec<_> = (0..4).map(|_| pool.claim_by(bind).unwrap()).collect();
        assert!(claims.iter().all(|claim| claim.ip != taken));
        assert_eq!(pool.claim_by(bind).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn an_address_that_is_not_local_is_an_error() {
        let pool = Pool::new(small(), 0);
        let error = pool
            .claim_by::<()>(|_| Err(io::ErrorKind::AddrNotAvailable.into()))
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrNotAvailable);
    }

    proptest! {
        #[test]
        fn no_two_pods_share_an_address(seed in any::<u32>(), steps in proptest::collection::vec(0_usize..8, 0..60)) {
            let pool = Pool::new(small(), seed);
            let mut held: Vec<AddressClaim<()>> = Vec::new();
            for step in steps {
                if step < held.len() {
                    held.remove(step);
                } else if let Ok(claim) = pool.claim_by(free) {
                    prop_assert!(held.iter().all(|other| other.ip != claim.ip));
                    prop_assert!(claim.ip != small().host());
                    held.push(claim);
                }
            }
            prop_assert!(held.len() <= 5);
        }

        #[test]
        fn any_text_is_a_network_or_refused(text in ".{0,20}") {
            drop(text.parse::<Network>());
        }
    }
}
