//! Whose turn it is to evaluate policies: requests that take long are kept from holding up others.
//!
//! A request begins with a turn that it gives back after [`QUICK`], whatever it is at, and goes on when it gets one of the few for
//! slow requests. So policies that spin, which whoever may write one in a namespace of their own can make, share these among
//! themselves, and never all that there is.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout_at},
};

/// The turns that there are.
#[derive(Clone, Debug)]
pub(super) struct EvaluationTurns {
    quick: Arc<Semaphore>,
    slow: Arc<Semaphore>,
    /// How many more may wait for a slow turn: each has a thread.
    waiting: Arc<Semaphore>,
}

/// The turn of one request, which ends at a deadline.
#[derive(Debug)]
pub(super) struct EvaluationTurn {
    turns: EvaluationTurns,
    deadline: Instant,
    held: Mutex<HeldTurn>,
}

/// What a request holds.
#[derive(Debug)]
enum HeldTurn {
    Quick {
        _permit: OwnedSemaphorePermit,
        until: Instant,
    },
    Slow {
        _permit: OwnedSemaphorePermit,
    },
    /// There was none to be had in time.
    Nothing,
}

/// How many requests are worked on at a time, for each processor: some wait for none.
const QUICK_TURNS: usize = 2;

/// How long a request may be worked on until it is slow: a thousand times as long as most policies take.
const QUICK: Duration = Duration::from_millis(50);

/// How many may wait for a slow turn: a small part of the threads that block.
const WAITING: usize = 64;

// === impl EvaluationTurns ===

impl EvaluationTurns {
    /// For a machine with so many processors: slow requests get at most half of them.
    pub(super) fn new(processors: usize) -> Self {
        Self {
            quick: Arc::new(Semaphore::new(QUICK_TURNS * processors)),
            slow: Arc::new(Semaphore::new((processors / 2).max(1))),
            waiting: Arc::new(Semaphore::new(WAITING)),
        }
    }

    /// Waits for a turn; `None` where there is none until `deadline`.
    pub(super) async fn take(&self, deadline: Instant) -> Option<EvaluationTurn> {
        let permit = timeout_at(deadline, self.quick.clone().acquire_owned()).await;
        let held = HeldTurn::Quick {
            _permit: permit.ok()?.ok()?,
            until: Instant::now() + QUICK,
        };
        Some(EvaluationTurn {
            turns: self.clone(),
            deadline,
            held: held.into(),
        })
    }

    /// A turn for slow requests. Blocks until there is one, or `deadline`.
    fn take_slow(&self, deadline: Instant) -> HeldTurn {
        let Ok(_waiting) = self.waiting.try_acquire() else {
            return HeldTurn::Nothing;
        };
        let permit = Handle::current().block_on(timeout_at(deadline, self.slow.clone().acquire_owned()));
        match permit {
            Ok(Ok(permit)) => HeldTurn::Slow { _permit: permit },
            _ => HeldTurn::Nothing,
        }
    }
}

// === impl EvaluationTurn ===

impl EvaluationTurn {
    /// Whether it is over, for whoever works on the request, on a thread of the runtime that may block: asked again and again. May
    /// block until others are done.
    pub(super) fn is_over(&self) -> bool {
        let now = Instant::now();
        if now >= self.deadline {
            return true;
        }
        let mut held = self.held.lock();
        if matches!(&*held, HeldTurn::Quick { until, .. } if now >= *until) {
            // The quick turn is given back first: nobody waits while holding one.
            *held = HeldTurn::Nothing;
            *held = self.turns.take_slow(self.deadline);
        }
        matches!(&*held, HeldTurn::Nothing)
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::{JoinHandle, spawn_blocking};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    /// Works for ever, until its turn is over.
    async fn spin(turns: &EvaluationTurns, deadline: Instant) -> JoinHandle<()> {
        let turn = turns.take(deadline).await.unwrap();
        spawn_blocking(move || {
            while !turn.is_over() && !turn.turns.slow.is_closed() {
                std::thread::sleep(Duration::from_millis(1));
            }
        })
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn requests_that_spin_hold_up_nobody_else() {
        let turns = EvaluationTurns::new(2);
        let deadline = Instant::now() + PATIENCE;
        let mut spinning = Vec::new();
        // Each gets its turn while all those before go on spinning: far more than there are turns.
        for _ in 0..20 {
            spinning.push(spin(&turns, deadline).await);
        }
        for _ in 0..50 {
            let turn = turns.take(deadline).await.unwrap();
            assert!(!spawn_blocking(move || turn.is_over()).await.unwrap());
        }
        assert!(Instant::now() < deadline, "those that spin went first");
        assert_eq!(turns.slow.available_permits(), 0, "nobody spins");
        assert!(spinning.iter().all(|spinning| !spinning.is_finished()));
        turns.slow.close();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_turn_is_over_at_its_deadline_and_where_too_many_wait() {
        let turns = EvaluationTurns::new(1);
        let deadline = Instant::now() + Duration::from_millis(200);
        let spinning = [spin(&turns, deadline).await, spin(&turns, deadline).await];
        for spinning in spinning {
            spinning.await.unwrap();
        }
        assert_eq!(turns.quick.available_permits(), QUICK_TURNS);
        assert_eq!(turns.slow.available_permits(), 1);

        let _crowd = turns
            .waiting
            .clone()
            .acquire_many_owned(u32::try_from(WAITING).unwrap())
            .await
            .unwrap();
        spin(&turns, Instant::now() + PATIENCE).await.await.unwrap();
        assert!(turns.take(Instant::now()).await.is_some(), "turns are kept");
    }
}
