//! Adaptive concurrency limit of writes.
//!
//! An API server does not report the number of seats of a flow (KEP-1040). But if it gets more writes than it
//! can handle at a time, they wait there, and each takes longer; a rejected one (429) is sent again after a
//! second or more. So the limit adapts to the duration of writes.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::Instant,
};

/// A concurrency limit of writes.
#[derive(Debug)]
pub struct WritePace {
    permits: Semaphore,
    state: Mutex<State>,
}

/// A permit for one write, until it is dropped.
#[derive(Debug)]
pub struct WritePermit<'p> {
    pace: &'p WritePace,
    permit: Option<SemaphorePermit<'p>>,
}

#[derive(Debug)]
struct State {
    /// The current limit.
    limit: usize,
    /// How many running writes exceed the limit.
    excess: usize,
    /// The shortest duration of a write.
    fastest: Option<Duration>,
    /// Measurements since the last change of the limit.
    window: Window,
}

#[derive(Debug, Default)]
struct Window {
    writes: u32,
    took: Duration,
    slowest: Duration,
    /// Whether the limit was reached: otherwise the measurements do not depend on it.
    is_full: bool,
}

const INITIAL_LIMIT: usize = 16;

/// The lowest limit.
const MIN_LIMIT: usize = 2;

/// How many writes may wait at the API server, per half of the limit: enough that it is always busy.
const WAITING_PER_HALF: usize = 8;

/// A write that takes this long was rejected and sent again, or should have been.
const REJECTED_AFTER: Duration = Duration::from_secs(1);

impl WritePace {
    /// The highest limit.
    pub const MAX_LIMIT: usize = 128;

    /// Creates a limit without measurements.
    pub fn new() -> Self {
        let state = State {
            limit: INITIAL_LIMIT,
            excess: 0,
            fastest: None,
            window: Window::default(),
        };
        Self {
            permits: Semaphore::new(INITIAL_LIMIT),
            state: Mutex::new(state),
        }
    }

    /// Returns the current limit.
    pub fn limit(&self) -> usize {
        self.state.lock().limit
    }

    /// Waits for a permit.
    pub async fn acquire(&self) -> WritePermit<'_> {
        // The semaphore is never closed.
        let permit = self.permits.acquire().await.ok();
        WritePermit { pace: self, permit }
    }
}

impl Default for WritePace {
    fn default() -> Self {
        Self::new()
    }
}

impl WritePermit<'_> {
    /// Waits for a write, and measures its duration.
    pub async fn write<T>(&self, write: impl Future<Output = T>) -> T {
        let started = Instant::now();
        let answer = write.await;
        let is_full = self.pace.permits.available_permits() == 0;
        let more = self.pace.state.lock().note(started.elapsed(), is_full);
        self.pace.permits.add_permits(more);
        answer
    }
}

impl Drop for WritePermit<'_> {
    fn drop(&mut self) {
        let mut state = self.pace.state.lock();
        if state.excess > 0
            && let Some(permit) = self.permit.take()
        {
            state.excess -= 1;
            permit.forget();
        }
    }
}

impl State {
    /// Records the duration of a write, and whether the limit was reached. Returns the increase of the limit.
    fn note(&mut self, took: Duration, is_full: bool) -> usize {
        let window = &mut self.window;
        window.writes += 1;
        window.is_full |= is_full;
        window.took += took;
        window.slowest = window.slowest.max(took);
        self.fastest = Some(self.fastest.map_or(took, |fastest| fastest.min(took)));
        if (window.writes as usize) < self.limit {
            return 0;
        }
        let window = std::mem::take(&mut self.window);
        let limit = self.next_limit(&window);
        // The cluster may change, so the shortest duration is forgotten after some time.
        self.fastest = self.fastest.map(|fastest| fastest.mul_f64(1.01));
        let allowed = self.limit + self.excess;
        self.limit = limit;
        self.excess = allowed.saturating_sub(limit);
        limit.saturating_sub(allowed)
    }

    fn next_limit(&self, window: &Window) -> usize {
        if window.slowest >= REJECTED_AFTER {
            return (self.limit / 2).max(MIN_LIMIT);
        }
        if !window.is_full {
            return self.limit;
        }
        let average = window.took.as_secs_f64() / f64::from(window.writes);
        let fastest = self.fastest.unwrap_or_default().as_secs_f64();
        // While a write takes less than twice the shortest duration, most writes do not wait.
        let worked_on = (2.0 * fastest / average).clamp(0.5, 1.0);
        // Both are small and positive.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss
        )]
        let kept = (self.limit as f64 * worked_on).round() as usize;
        (self.limit.midpoint(kept + WAITING_PER_HALF)).clamp(MIN_LIMIT, WritePace::MAX_LIMIT)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::task::JoinSet;

    use super::*;

    /// Sends many writes through one limit to an API server that handles `seats` writes at a time, each for
    /// `work`. Returns the final limit, and the total duration.
    async fn write(count: usize, seats: usize, work: Duration) -> (usize, Duration) {
        let (pace, server) = (Arc::new(WritePace::new()), Arc::new(Semaphore::new(seats)));
        let started = Instant::now();
        let mut writers = JoinSet::new();
        for _ in 0..count {
            let (pace, server) = (pace.clone(), server.clone());
            writers.spawn(async move {
                let permit = pace.acquire().await;
                let answer = async {
                    let _seat = server.acquire().await;
                    tokio::time::sleep(work).await;
                };
                permit.write(answer).await;
            });
        }
        writers.join_all().await;
        let state = pace.state.lock();
        assert_eq!(pace.permits.available_permits(), state.limit + state.excess);
        (state.limit, started.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn few_seats_lead_to_a_low_limit() {
        let work = Duration::from_millis(10);
        let (limit, took) = write(2000, 2, work).await;
        assert!((8..=24).contains(&limit), "{limit}");
        assert_eq!(took, work * 1000);
    }

    #[tokio::test(start_paused = true)]
    async fn many_seats_lead_to_a_high_limit() {
        let work = Duration::from_millis(10);
        let (limit, took) = write(5000, 1000, work).await;
        assert_eq!(limit, WritePace::MAX_LIMIT);
        assert!(took < work * 80, "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn rejected_writes_lower_the_limit() {
        let (limit, _) = write(200, 1000, REJECTED_AFTER).await;
        assert_eq!(limit, MIN_LIMIT);
    }

    #[tokio::test(start_paused = true)]
    async fn writes_below_the_limit_do_not_change_it() {
        let pace = WritePace::new();
        for _ in 0..100 {
            pace.acquire()
                .await
                .write(tokio::time::sleep(REJECTED_AFTER / 2))
                .await;
        }
        assert_eq!(pace.state.lock().limit, INITIAL_LIMIT);
    }
}
