//! Several replicas with one Lease, differing clocks, slow requests, lost responses and suspended processes:
//! two replicas never lead at the same time.

use jiff::SignedDuration;
use proptest::prelude::*;

use super::{
    super::{Candidate, Decision, LeaderElectionRecord, LeaderTerm, Moment},
    *,
};

const REPLICAS: usize = 3;

/// An event of the simulation.
#[derive(Clone, Debug)]
enum Event {
    /// Time passes, in milliseconds.
    Time(u64),
    /// A replica reads the Lease and decides.
    Decide(usize),
    /// A replica reads, decides, writes, and gets the response at once.
    Try(usize),
    /// The write of a replica reaches the API server.
    Arrive(usize),
    /// A replica gets the response to its successful write.
    Hear(usize),
    /// The response is lost.
    Lose(usize),
    /// The calendar of a replica is set, by a number of seconds.
    Jump(usize, i64),
    /// A replica releases the Lease and exits; another process replaces it.
    Vacate(usize),
    /// A replica is killed; another process replaces it.
    Kill(usize),
}

struct Replica {
    candidate: Candidate,
    /// The speed of the replica's clock in percent.
    rate: u64,
    since_boot: Duration,
    jumped: SignedDuration,
    /// A write in flight, with the version that it replaces.
    sent: Option<(LeaderElectionRecord, u64, Moment)>,
    /// A successful write whose response is in flight.
    answer: Option<(LeaderElectionRecord, Moment)>,
    claim: Option<LeaderTerm>,
}

struct World {
    /// Milliseconds.
    now: u64,
    lease: Option<LeaderElectionRecord>,
    version: u64,
    replicas: Vec<Replica>,
    processes: usize,
}

impl World {
    fn new(clocks: &[(u64, u64)]) -> Self {
        let replica = |(index, (rate, uptime)): (usize, &(u64, u64))| Replica {
            candidate: Candidate::new(index.to_string(), TIMING),
            rate: *rate,
            since_boot: Duration::from_millis(*uptime),
            jumped: SignedDuration::ZERO,
            sent: None,
            answer: None,
            claim: None,
        };
        Self {
            now: 0,
            lease: None,
            version: 0,
            replicas: clocks.iter().enumerate().map(replica).collect(),
            processes: clocks.len(),
        }
    }

    fn clock(&self, index: usize) -> Moment {
        let replica = &self.replicas[index];
        let elapsed = Duration::from_millis(self.now * replica.rate / 100);
        Moment {
            since_boot: replica.since_boot + elapsed,
            wall: at(0).after(elapsed).wall + replica.jumped,
        }
    }

    /// Writes `record` over `version`, and reports whether that succeeded.
    fn write(&mut self, record: &LeaderElectionRecord, version: u64) -> bool {
        let succeeds = version == self.version;
        if succeeds {
            self.lease = Some(record.clone());
            self.version += 1;
        }
        succeeds
    }

    /// Replaces a process that exited. Its requests in flight may still arrive.
    fn replace(&mut self, index: usize) {
        let replica = &mut self.replicas[index];
        replica.candidate = Candidate::new(self.processes.to_string(), TIMING);
        replica.claim = None;
        replica.answer = None;
        self.processes += 1;
    }

    fn apply_event(&mut self, event: &Event) {
        match *event {
            Event::Time(milliseconds) => self.now += milliseconds,
            Event::Decide(index) => {
                let (now, version, lease) = (self.clock(index), self.version, self.lease.clone());
                let replica = &mut self.replicas[index];
                let decision = replica.candidate.decide(lease.as_ref(), now);
                match decision {
                    Decision::Wait { .. } if replica.claim.is_some() => self.replace(index),
                    Decision::Wait { .. } => {}
                    _ if replica.candidate.has_expired(now) => self.replace(index),
                    Decision::Take(record) | Decision::Renew(record) => {
                        replica.sent = Some((record, version, now));
                    }
                }
            }
            Event::Try(index) => {
                for event in [Event::Decide(index), Event::Arrive(index), Event::Hear(index)] {
                    self.apply_event(&event);
                }
            }
            Event::Arrive(index) => {
                if let Some((record, version, sent)) = self.replicas[index].sent.take()
                    && self.write(&record, version)
                    && record.holder == self.replicas[index].candidate.identity()
                {
                    self.replicas[index].answer = Some((record, sent));
                }
            }
            Event::Hear(index) => {
                let replica = &mut self.replicas[index];
                if let Some((record, sent)) = replica.answer.take() {
                    replica.claim = Some(replica.candidate.record_write(record, sent).clone());
                }
            }
            Event::Lose(index) => self.replicas[index].answer = None,
            Event::Jump(index, seconds) => {
                let replica = &mut self.replicas[index];
                replica.jumped += SignedDuration::from_secs(seconds);
            }
            Event::Vacate(index) => {
                let (now, version) = (self.clock(index), self.version);
                self.replicas[index].claim = None;
                if let Some(lease) = self.lease.clone()
                    && lease.holder == self.replicas[index].candidate.identity()
                {
                    self.write(&lease.released(now), version);
                }
                self.replace(index);
            }
            Event::Kill(index) => self.replace(index),
        }
    }

    fn leaders(&self) -> Vec<&str> {
        let replicas = self.replicas.iter().enumerate();
        replicas
            .filter_map(|(index, replica)| {
                let identity = replica.candidate.identity();
                let claim = replica.claim.as_ref()?;
                claim
                    .is_current_for(identity, self.clock(index))
                    .then_some(identity)
            })
            .collect()
    }
}

fn event() -> impl Strategy<Value = Event> {
    let replica = || 0..REPLICAS;
    prop_oneof![
        6 => (1..4_000u64).prop_map(Event::Time),
        1 => (4_000..40_000u64).prop_map(Event::Time),
        6 => replica().prop_map(Event::Try),
        3 => replica().prop_map(Event::Decide),
        3 => replica().prop_map(Event::Arrive),
        3 => replica().prop_map(Event::Hear),
        1 => replica().prop_map(Event::Lose),
        1 => (replica(), -100_000..100_000i64).prop_map(|(index, seconds)| Event::Jump(index, seconds)),
        1 => replica().prop_map(Event::Vacate),
        1 => replica().prop_map(Event::Kill),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn two_replicas_never_lead_at_the_same_time(
        clocks in prop::collection::vec((90..=110u64, 0..1_000_000u64), REPLICAS),
        events in prop::collection::vec(event(), 1..200),
    ) {
        let mut world = World::new(&clocks);
        for event in &events {
            world.apply_event(event);
            prop_assert!(world.leaders().len() <= 1, "{:?} lead after {event:?}", world.leaders());
        }
    }

    #[test]
    fn a_replica_becomes_leader_soon_after_any_events(
        clocks in prop::collection::vec((90..=110u64, 0..1_000_000u64), REPLICAS),
        events in prop::collection::vec(event(), 0..100),
    ) {
        let mut world = World::new(&clocks);
        for event in &events {
            world.apply_event(event);
        }
        // The first replica tries every 2 s and gets immediate responses; the others are suspended. By its
        // slow clock the Lease ends within 17 s. A replica whose old claim has expired exits, and the next
        // attempt is made by another process.
        let deadline = world.now + 24_000;
        while world.leaders().first() != Some(&world.replicas[0].candidate.identity()) {
            prop_assert!(world.now <= deadline, "{:?} lead", world.leaders());
            world.apply_event(&Event::Try(0));
            world.apply_event(&Event::Time(2_000));
        }
    }
}

#[test]
fn claims_that_start_at_the_response_allow_two_leaders() {
    let mut world = World::new(&[(100, 0), (100, 0), (100, 0)]);
    for event in [
        Event::Decide(0),
        Event::Arrive(0),
        Event::Decide(1),
        Event::Time(15_000),
        Event::Decide(1),
    ] {
        world.apply_event(&event);
    }
    // The response comes late; a claim from here would still be current when the other replica acquires the
    // Lease.
    let late = world.clock(0);
    let (record, _) = world.replicas[0].answer.take().unwrap();
    world.replicas[0].claim = Some(world.replicas[0].candidate.record_write(record, late).clone());
    world.apply_event(&Event::Arrive(1));
    world.apply_event(&Event::Hear(1));
    assert_eq!(world.leaders(), ["0", "1"]);
}
