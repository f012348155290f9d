//! A limit on open connections. When all slots are taken, a new connection evicts another: of the client with
//! the most connections, the one that has been idle longest. So a client that opens many connections can only
//! evict its own.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    sync::Arc,
};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// The slots of all connections.
#[derive(Debug)]
pub struct ConnectionSlots {
    count: usize,
    table: Mutex<Table>,
}

/// The slot of one connection, until it is dropped.
#[derive(Debug)]
pub struct ConnectionSlot {
    slots: Arc<ConnectionSlots>,
    number: u64,
    evicted: CancellationToken,
}

/// Counts as an active request until it is dropped.
#[derive(Debug)]
pub struct SlotRequest(Arc<ConnectionSlot>);

#[derive(Debug, Default)]
struct Table {
    /// A logical clock, incremented with each event.
    events: u64,
    connections: BTreeMap<u64, Connection>,
}

#[derive(Debug)]
struct Connection {
    client: IpAddr,
    /// The number of active requests.
    requests: usize,
    /// The event when it was opened, or its last request began or ended.
    since: u64,
    evicted: CancellationToken,
}

impl ConnectionSlots {
    /// Creates `count` slots.
    pub fn new(count: usize) -> Arc<Self> {
        Arc::new(Self {
            count,
            table: Mutex::default(),
        })
    }

    /// Takes a slot for a connection of `client`. If none is free, a connection is evicted, possibly this
    /// one.
    pub fn take(self: &Arc<Self>, client: IpAddr) -> Arc<ConnectionSlot> {
        let mut table = self.table.lock();
        table.events += 1;
        let (number, evicted) = (table.events, CancellationToken::new());
        let connection = Connection {
            client,
            requests: 0,
            since: number,
            evicted: evicted.clone(),
        };
        table.connections.insert(number, connection);
        if table.connections.len() > self.count {
            table.evict_one();
        }
        Arc::new(ConnectionSlot {
            slots: self.clone(),
            number,
            evicted,
        })
    }
}

impl Table {
    fn evict_one(&mut self) {
        let mut slots: HashMap<IpAddr, usize> = HashMap::new();
        for connection in self.connections.values() {
            *slots.entry(connection.client).or_default() += 1;
        }
        let rank = |connection: &Connection| {
            (
                slots.get(&connection.client),
                connection.requests == 0,
                Reverse(connection.since),
            )
        };
        let leaving = self
            .connections
            .iter()
            .max_by_key(|(_, connection)| rank(connection));
        if let Some(number) = leaving.map(|(number, _)| *number)
            && let Some(connection) = self.connections.remove(&number)
        {
            connection.evicted.cancel();
        }
    }
}

impl ConnectionSlot {
    /// Records that a request is active.
    pub fn begin_request(self: &Arc<Self>) -> SlotRequest {
        self.change(|requests| requests + 1);
        SlotRequest(self.clone())
    }

    /// Waits until this connection is evicted.
    pub async fn wait_for_eviction(&self) {
        self.evicted.cancelled().await;
    }

    fn change(&self, requests: impl FnOnce(usize) -> usize) {
        let mut table = self.slots.table.lock();
        table.events += 1;
        let now = table.events;
        if let Some(connection) = table.connections.get_mut(&self.number) {
            connection.requests = requests(connection.requests);
            connection.since = now;
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.slots.table.lock().connections.remove(&self.number);
    }
}

impl Drop for SlotRequest {
    fn drop(&mut self) {
        self.0.change(|requests| requests.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn client(number: u8) -> IpAddr {
        [10, 0, 0, number].into()
    }

    fn is_evicted(slot: &ConnectionSlot) -> bool {
        slot.evicted.is_cancelled()
    }

    #[test]
    fn the_longest_idle_connection_of_a_client_is_evicted() {
        let slots = ConnectionSlots::new(3);
        let [busy, idle, used] = [1, 1, 1].map(|number| slots.take(client(number)));
        let _busy = busy.begin_request();
        drop(used.begin_request());
        let next = slots.take(client(1));
        assert_eq!(
            [&busy, &idle, &used, &next].map(|slot| is_evicted(slot)),
            [false, true, false, false]
        );
        let _all = [used.begin_request(), next.begin_request()];
        let refused = slots.take(client(1));
        assert!(
            is_evicted(&refused),
            "a connection with an active request is not evicted"
        );
    }

    #[test]
    fn a_closed_connection_frees_its_slot() {
        let slots = ConnectionSlots::new(1);
        for _ in 0..3 {
            assert!(!is_evicted(&slots.take(client(1))));
        }
        let first = slots.take(client(1));
        let second = slots.take(client(2));
        assert!(is_evicted(&first) && !is_evicted(&second));
        drop(first);
        assert!(!is_evicted(&second), "a slot is released once");
    }

    proptest! {
        #[test]
        fn only_the_client_with_the_most_connections_is_evicted(
            coming in prop::collection::vec((1..6_u8, any::<bool>()), 1..60),
            count in 1..12_usize,
        ) {
            let slots = ConnectionSlots::new(count);
            let mut taken: Vec<(u8, Arc<ConnectionSlot>, Option<SlotRequest>)> = Vec::new();
            for (number, is_busy) in coming {
                let slot = slots.take(client(number));
                let busy = is_busy.then(|| slot.begin_request());
                taken.push((number, slot, busy));
                let of = |number: u8| taken.iter().filter(|(other, ..)| *other == number).count();
                let most = (1..6).map(of).max().unwrap();
                let lost = taken.iter().position(|(_, slot, _)| is_evicted(slot));
                prop_assert_eq!(lost.is_some(), taken.len() > count);
                if let Some(lost) = lost {
                    prop_assert_eq!(of(taken[lost].0), most);
                    taken.remove(lost);
                }
            }
        }
    }
}
