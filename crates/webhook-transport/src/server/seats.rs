//! Who is connected. Where all seats are taken, somebody has to leave for the next: of the client that has the most of them
//! who waits, and of these who has waited longest. So a client can only drive itself away, however much it connects.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    sync::Arc,
};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// The seats.
#[derive(Debug)]
pub struct ConnectionSeats {
    count: usize,
    table: Mutex<Table>,
}

/// A place among those who are connected, until it is dropped.
#[derive(Debug)]
pub struct Seat {
    seats: Arc<ConnectionSeats>,
    number: u64,
    left: CancellationToken,
}

/// A request is under way, until this is dropped.
#[derive(Debug)]
pub struct Occupied(Arc<Seat>);

#[derive(Debug, Default)]
struct Table {
    /// Counts what happens; never what time it is.
    now: u64,
    guests: BTreeMap<u64, Guest>,
}

#[derive(Debug)]
struct Guest {
    client: IpAddr,
    /// How many requests are under way.
    requests: usize,
    /// When it came, or its last request began or ended.
    since: u64,
    left: CancellationToken,
}

// === impl ConnectionSeats ===

impl ConnectionSeats {
    /// So many seats.
    pub fn new(count: usize) -> Arc<Self> {
        Arc::new(Self {
            count,
            table: Mutex::default(),
        })
    }

    /// A seat for `client`. Somebody may have to leave for it, and that may be who asks.
    pub fn take(self: &Arc<Self>, client: IpAddr) -> Arc<Seat> {
        let mut table = self.table.lock();
        table.now += 1;
        let (number, left) = (table.now, CancellationToken::new());
        let guest = Guest {
            client,
            requests: 0,
            since: number,
            left: left.clone(),
        };
        table.guests.insert(number, guest);
        if table.guests.len() > self.count {
            table.make_room();
        }
        Arc::new(Seat {
            seats: self.clone(),
            number,
            left,
        })
    }
}

// === impl Table ===

impl Table {
    fn make_room(&mut self) {
        let mut seats: HashMap<IpAddr, usize> = HashMap::new();
        for guest in self.guests.values() {
            *seats.entry(guest.client).or_default() += 1;
        }
        let rank = |guest: &Guest| {
            (
                seats.get(&guest.client),
                guest.requests == 0,
                Reverse(guest.since),
            )
        };
        let leaving = self.guests.iter().max_by_key(|(_, guest)| rank(guest));
        if let Some(number) = leaving.map(|(number, _)| *number)
            && let Some(guest) = self.guests.remove(&number)
        {
            guest.left.cancel();
        }
    }
}

// === impl Seat ===

impl Seat {
    /// Says that a request is under way.
    pub fn occupy(self: &Arc<Self>) -> Occupied {
        self.change(|requests| requests + 1);
        Occupied(self.clone())
    }

    /// Ends when another needs the seat.
    pub async fn lost(&self) {
        self.left.cancelled().await;
    }

    fn change(&self, requests: impl FnOnce(usize) -> usize) {
        let mut table = self.seats.table.lock();
        table.now += 1;
        let now = table.now;
        if let Some(guest) = table.guests.get_mut(&self.number) {
            guest.requests = requests(guest.requests);
            guest.since = now;
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.seats.table.lock().guests.remove(&self.number);
    }
}

// === impl Occupied ===

impl Drop for Occupied {
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

    fn is_lost(seat: &Seat) -> bool {
        seat.left.is_cancelled()
    }

    #[test]
    fn of_one_client_who_has_idled_longest_leaves() {
        let seats = ConnectionSeats::new(3);
        let [busy, idle, used] = [1, 1, 1].map(|number| seats.take(client(number)));
        let _busy = busy.occupy();
        drop(used.occupy());
        let next = seats.take(client(1));
        assert_eq!(
            [&busy, &idle, &used, &next].map(|seat| is_lost(seat)),
            [false, true, false, false]
        );
        let _all = [used.occupy(), next.occupy()];
        let refused = seats.take(client(1));
        assert!(is_lost(&refused), "nobody leaves whose request is under way");
    }

    #[test]
    fn who_leaves_by_itself_makes_room() {
        let seats = ConnectionSeats::new(1);
        for _ in 0..3 {
            assert!(!is_lost(&seats.take(client(1))));
        }
        let first = seats.take(client(1));
        let second = seats.take(client(2));
        assert!(is_lost(&first) && !is_lost(&second));
        drop(first);
        assert!(!is_lost(&second), "a seat is given up once");
    }

    proptest! {
        #[test]
        fn nobody_leaves_for_a_client_that_has_more_seats(
            coming in prop::collection::vec((1..6_u8, any::<bool>()), 1..60),
            count in 1..12_usize,
        ) {
            let seats = ConnectionSeats::new(count);
            let mut taken: Vec<(u8, Arc<Seat>, Option<Occupied>)> = Vec::new();
            for (number, is_busy) in coming {
                let seat = seats.take(client(number));
                let busy = is_busy.then(|| seat.occupy());
                taken.push((number, seat, busy));
                let of = |number: u8| taken.iter().filter(|(other, ..)| *other == number).count();
                let most = (1..6).map(of).max().unwrap();
                let lost = taken.iter().position(|(_, seat, _)| is_lost(seat));
                prop_assert_eq!(lost.is_some(), taken.len() > count);
                if let Some(lost) = lost {
                    prop_assert_eq!(of(taken[lost].0), most);
                    taken.remove(lost);
                }
            }
        }
    }
}
