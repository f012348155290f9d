//! Decides when the next request is sent.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

/// When a worker sends its next request.
#[derive(Clone, Debug)]
pub(super) enum Pace {
    /// A fixed time after the previous answer.
    Pause(Duration),
    /// At the next scheduled time.
    Turns(Arc<Turns>),
}

/// The times at which requests are due. Each is for one worker, in order of arrival.
#[derive(Debug)]
pub(super) struct Turns {
    sender: Mutex<Option<UnboundedSender<Instant>>>,
    receiver: tokio::sync::Mutex<UnboundedReceiver<Instant>>,
    waiting: AtomicUsize,
    untaken: AtomicUsize,
}

impl Pace {
    /// Waits for the due time and returns it. The latency of a late worker counts from there.
    pub(super) async fn due(&self) -> Instant {
        match self {
            Self::Pause(pause) => {
                tokio::time::sleep(*pause).await;
                Instant::now()
            }
            Self::Turns(turns) => turns.take().await,
        }
    }

    /// Whether the other workers are enough. Workers that were started while a server was slow are stopped,
    /// because each keeps an object.
    pub(super) fn has_others(&self) -> bool {
        match self {
            Self::Pause(_) => false,
            Self::Turns(turns) => turns.has_worker_for_one_more(),
        }
    }
}

impl Turns {
    pub(super) fn new() -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Self {
            sender: Mutex::new(Some(sender)),
            receiver: tokio::sync::Mutex::new(receiver),
            waiting: AtomicUsize::new(0),
            untaken: AtomicUsize::new(0),
        }
    }

    /// Schedules a request.
    pub(super) fn give(&self, due: Instant) {
        if let Some(sender) = &*self.sender.lock()
            && sender.send(due).is_ok()
        {
            self.untaken.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Whether an idle worker can take one more request.
    pub(super) fn has_worker_for_one_more(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > self.untaken.load(Ordering::SeqCst)
    }

    /// Stops all waiting workers.
    pub(super) fn end(&self) {
        self.sender.lock().take();
    }

    async fn take(&self) -> Instant {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let due = self.receiver.lock().await.recv().await;
        if due.is_some() {
            self.untaken.fetch_sub(1, Ordering::SeqCst);
        }
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        due.unwrap_or_else(Instant::now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_worker_that_comes_late_is_told_when_its_request_was_due() {
        let turns = Turns::new();
        let due = Instant::now();
        turns.give(due);
        assert!(!turns.has_worker_for_one_more());
        assert_eq!(turns.take().await, due);
    }

    #[tokio::test]
    async fn a_waiting_worker_is_there_for_one_turn() {
        let turns = Arc::new(Turns::new());
        let worker = tokio::spawn({
            let turns = turns.clone();
            async move { turns.take().await }
        });
        while !turns.has_worker_for_one_more() {
            tokio::task::yield_now().await;
        }
        turns.give(Instant::now());
        assert!(!turns.has_worker_for_one_more());
        worker.await.unwrap();
    }

    #[tokio::test]
    async fn the_end_wakes_all_waiting_workers() {
        let turns = Turns::new();
        turns.end();
        turns.take().await;
    }
}
