//! Limits how many requests are evaluated at a time, so that slow ones do not delay the others.
//!
//! A request starts with a quick permit. After [`QUICK`] it gives that back, and continues once it gets one
//! of the few permits for slow requests. Anyone who can write a policy in one namespace can make policies
//! that spin; these compete with each other for the slow permits, and never occupy all threads.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout_at},
};

/// All permits of the process.
#[derive(Clone, Debug)]
pub(super) struct EvaluationLimit {
    quick: Arc<Semaphore>,
    slow: Arc<Semaphore>,
    /// How many requests may wait for a slow permit: each blocks a thread.
    waiting: Arc<Semaphore>,
}

/// The permit of one request, which ends at a deadline.
#[derive(Debug)]
pub(super) struct EvaluationPermit {
    limit: EvaluationLimit,
    deadline: Instant,
    held: Mutex<HeldPermit>,
}

#[derive(Debug)]
enum HeldPermit {
    Quick {
        _permit: OwnedSemaphorePermit,
        until: Instant,
    },
    Slow {
        _permit: OwnedSemaphorePermit,
    },
    /// The request got no permit in time.
    Nothing,
}

/// Requests that are evaluated at a time, per processor: some of them wait and need no processor.
const QUICK_PERMITS: usize = 2;

/// How long an evaluation may take before it counts as slow: a thousand times as long as most policies take.
const QUICK: Duration = Duration::from_millis(50);

/// How many requests may wait for a slow permit: a small part of the blocking threads of tokio.
const WAITING: usize = 64;

impl EvaluationLimit {
    /// Creates the permits for a machine with so many processors: slow requests get at most half of them.
    pub(super) fn new(processors: usize) -> Self {
        Self {
            quick: Arc::new(Semaphore::new(QUICK_PERMITS * processors)),
            slow: Arc::new(Semaphore::new((processors / 2).max(1))),
            waiting: Arc::new(Semaphore::new(WAITING)),
        }
    }

    /// Waits for a permit; `None` if there is none until `deadline`.
    pub(super) async fn acquire(&self, deadline: Instant) -> Option<EvaluationPermit> {
        let permit = timeout_at(deadline, self.quick.clone().acquire_owned()).await;
        let held = HeldPermit::Quick {
            _permit: permit.ok()?.ok()?,
            until: Instant::now() + QUICK,
        };
        Some(EvaluationPermit {
            limit: self.clone(),
            deadline,
            held: held.into(),
        })
    }

    /// Waits for a permit for slow requests, and blocks until there is one, or until `deadline`.
    fn acquire_slow(&self, deadline: Instant) -> HeldPermit {
        let Ok(_waiting) = self.waiting.try_acquire() else {
            return HeldPermit::Nothing;
        };
        let permit = Handle::current().block_on(timeout_at(deadline, self.slow.clone().acquire_owned()));
        match permit {
            Ok(Ok(permit)) => HeldPermit::Slow { _permit: permit },
            _ => HeldPermit::Nothing,
        }
    }
}

impl EvaluationPermit {
    /// Reports whether the evaluation must end. The evaluation calls this again and again, on a blocking
    /// thread of the runtime. It blocks while a slow request waits for a permit.
    pub(super) fn is_over(&self) -> bool {
        let now = Instant::now();
        if now >= self.deadline {
            return true;
        }
        let mut held = self.held.lock();
        if matches!(&*held, HeldPermit::Quick { until, .. } if now >= *until) {
            // The quick permit is released first, so that no request holds it while waiting.
            *held = HeldPermit::Nothing;
            *held = self.limit.acquire_slow(self.deadline);
        }
        matches!(&*held, HeldPermit::Nothing)
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::{JoinHandle, spawn_blocking};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    /// Spins until its permit ends.
    async fn spin(limit: &EvaluationLimit, deadline: Instant) -> JoinHandle<()> {
        let permit = limit.acquire(deadline).await.unwrap();
        spawn_blocking(move || {
            while !permit.is_over() && !permit.limit.slow.is_closed() {
                std::thread::sleep(Duration::from_millis(1));
            }
        })
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn spinning_requests_do_not_delay_others() {
        let limit = EvaluationLimit::new(2);
        let deadline = Instant::now() + PATIENCE;
        let mut spinning = Vec::new();
        // More requests get a permit than there are permits, while all earlier ones keep spinning.
        for _ in 0..20 {
            spinning.push(spin(&limit, deadline).await);
        }
        for _ in 0..50 {
            let permit = limit.acquire(deadline).await.unwrap();
            assert!(!spawn_blocking(move || permit.is_over()).await.unwrap());
        }
        assert!(Instant::now() < deadline, "spinning requests delayed quick ones");
        assert_eq!(limit.slow.available_permits(), 0, "no request got a slow permit");
        assert!(spinning.iter().all(|spinning| !spinning.is_finished()));
        limit.slow.close();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_permit_ends_at_its_deadline_or_if_too_many_requests_wait() {
        let limit = EvaluationLimit::new(1);
        let deadline = Instant::now() + Duration::from_millis(200);
        let spinning = [spin(&limit, deadline).await, spin(&limit, deadline).await];
        for spinning in spinning {
            spinning.await.unwrap();
        }
        assert_eq!(limit.quick.available_permits(), QUICK_PERMITS);
        assert_eq!(limit.slow.available_permits(), 1);

        let _waiting = limit
            .waiting
            .clone()
            .acquire_many_owned(u32::try_from(WAITING).unwrap())
            .await
            .unwrap();
        spin(&limit, Instant::now() + PATIENCE).await.await.unwrap();
        assert!(
            limit.acquire(Instant::now()).await.is_some(),
            "a permit was not released"
        );
    }
}
