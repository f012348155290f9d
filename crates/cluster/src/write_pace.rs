//! How many writes are under way at a time: as many as the API server bears.
//!
//! An API server does not say how many seats a flow has (KEP-1040). But more writes than it works on wait there, and each takes
//! longer for it; one that is refused for now (429) is sent again after a second or more. So the time that writes take tells.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::Instant,
};

/// How many writes are under way at a time.
#[derive(Debug)]
pub struct WritePace {
    turns: Semaphore,
    state: Mutex<State>,
}

/// Leave for one write, until it is dropped.
#[derive(Debug)]
pub struct WriteTurn<'p> {
    pace: &'p WritePace,
    permit: Option<SemaphorePermit<'p>>,
}

#[derive(Debug)]
struct State {
    /// How many may be under way.
    limit: usize,
    /// How many more are under way than may be.
    excess: usize,
    /// What a write takes at the least.
    fastest: Option<Duration>,
    /// Since the limit was set last.
    window: Window,
}

#[derive(Debug, Default)]
struct Window {
    writes: u32,
    took: Duration,
    slowest: Duration,
    /// Whether as many were under way as may be: else the limit is not what counts.
    is_full: bool,
}

/// With how many it begins.
const FIRST: usize = 16;

/// The fewest.
const FEWEST: usize = 2;

/// How many writes may wait at the API server for each half of the limit that waits there: enough that it always has work.
const WAITING: usize = 8;

/// A write that takes so long was refused for now, and sent again; or should have been.
const REFUSED: Duration = Duration::from_secs(1);

// === impl WritePace ===

impl WritePace {
    /// The most writes that are under way at a time, whatever an API server bears.
    pub const MOST: usize = 128;

    /// The pace of somebody who has written nothing yet.
    pub fn new() -> Self {
        let state = State {
            limit: FIRST,
            excess: 0,
            fastest: None,
            window: Window::default(),
        };
        Self {
            turns: Semaphore::new(FIRST),
            state: Mutex::new(state),
        }
    }

    /// How many writes may be under way at present.
    pub fn limit(&self) -> usize {
        self.state.lock().limit
    }

    /// Waits until one more write may begin.
    pub async fn turn(&self) -> WriteTurn<'_> {
        // The semaphore is never closed.
        let permit = self.turns.acquire().await.ok();
        WriteTurn { pace: self, permit }
    }
}

impl Default for WritePace {
    fn default() -> Self {
        Self::new()
    }
}

// === impl WriteTurn ===

impl WriteTurn<'_> {
    /// Waits for the answer to a write, and learns from the time that it takes.
    pub async fn write<T>(&self, write: impl Future<Output = T>) -> T {
        let begun = Instant::now();
        let answer = write.await;
        let is_full = self.pace.turns.available_permits() == 0;
        let more = self.pace.state.lock().note(begun.elapsed(), is_full);
        self.pace.turns.add_permits(more);
        answer
    }
}

impl Drop for WriteTurn<'_> {
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

// === impl State ===

impl State {
    /// Notes what a write took, and whether as many were under way as may be. How many more may begin than before.
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
        // A cluster changes: what was fast once is forgotten.
        self.fastest = self.fastest.map(|fastest| fastest.mul_f64(1.01));
        let allowed = self.limit + self.excess;
        self.limit = limit;
        self.excess = allowed.saturating_sub(limit);
        limit.saturating_sub(allowed)
    }

    fn next_limit(&self, window: &Window) -> usize {
        if window.slowest >= REFUSED {
            return (self.limit / 2).max(FEWEST);
        }
        if !window.is_full {
            return self.limit;
        }
        let average = window.took.as_secs_f64() / f64::from(window.writes);
        let fastest = self.fastest.unwrap_or_default().as_secs_f64();
        // As long as a write takes less than twice the shortest time, most of them do not wait.
        let worked_on = (2.0 * fastest / average).clamp(0.5, 1.0);
        // Both are small and positive.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss
        )]
        let kept = (self.limit as f64 * worked_on).round() as usize;
        (self.limit.midpoint(kept + WAITING)).clamp(FEWEST, WritePace::MOST)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::task::JoinSet;

    use super::*;

    /// Lets many write through one pace to an API server that works on `seats` writes at a time, each for `work`. How many may
    /// write at the end, and how long it took.
    async fn write(count: usize, seats: usize, work: Duration) -> (usize, Duration) {
        let (pace, server) = (Arc::new(WritePace::new()), Arc::new(Semaphore::new(seats)));
        let begun = Instant::now();
        let mut writers = JoinSet::new();
        for _ in 0..count {
            let (pace, server) = (pace.clone(), server.clone());
            writers.spawn(async move {
                let turn = pace.turn().await;
                let answer = async {
                    let _seat = server.acquire().await;
                    tokio::time::sleep(work).await;
                };
                turn.write(answer).await;
            });
        }
        writers.join_all().await;
        let state = pace.state.lock();
        assert_eq!(pace.turns.available_permits(), state.limit + state.excess);
        (state.limit, begun.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn an_api_server_with_few_seats_always_has_work_and_no_crowd() {
        let work = Duration::from_millis(10);
        let (limit, took) = write(2000, 2, work).await;
        assert!((8..=24).contains(&limit), "{limit}");
        assert_eq!(took, work * 1000);
    }

    #[tokio::test(start_paused = true)]
    async fn an_api_server_with_many_seats_gets_many_writes() {
        let work = Duration::from_millis(10);
        let (limit, took) = write(5000, 1000, work).await;
        assert_eq!(limit, WritePace::MOST);
        assert!(took < work * 80, "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_refuses_for_now_gets_fewer() {
        let (limit, _) = write(200, 1000, REFUSED).await;
        assert_eq!(limit, FEWEST);
    }

    #[tokio::test(start_paused = true)]
    async fn where_nobody_waits_nothing_is_learnt() {
        let pace = WritePace::new();
        for _ in 0..100 {
            pace.turn().await.write(tokio::time::sleep(REFUSED / 2)).await;
        }
        assert_eq!(pace.state.lock().limit, FIRST);
    }
}
