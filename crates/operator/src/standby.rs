//! Repairs of targets by standby replicas: after a leader was killed, no other process would restore
//! overwritten targets until the next leader.
//!
//! Only the leader decides what is issued. The content of targets is recorded in Secrets, which each of these
//! repairs reads from the API server, and a target is written only if it is unchanged since it was observed.
//! A standby is thus one more writer whose last write may be late, which a rotation tolerates from any
//! process that was cut off.

use std::{sync::Arc, time::Duration};

use futures::{
    FutureExt,
    future::{self, BoxFuture},
};
use windlass_cluster::{
    Change,
    lease::Leadership,
    worker::{Action, Queue, QueueKey},
};

/// How long a standby waits for the leader to repair a changed target.
const CHANGED_DELAY: Duration = Duration::from_millis(250);

/// How long a standby waits for the leader after a target was created, which may get its first trust bundle.
const CREATED_DELAY: Duration = Duration::from_secs(2);

/// The targets that a standby may have to repair.
pub(crate) struct StandbyRepairs<K> {
    queue: Arc<Queue<K>>,
    leadership: Leadership,
}

impl<K: QueueKey> StandbyRepairs<K> {
    /// Creates an empty queue. `leadership` tells whether this process is a standby.
    pub(crate) fn new(leadership: Leadership) -> Self {
        let queue = Arc::new(Queue::new());
        Self { queue, leadership }
    }

    pub(crate) fn queue(&self) -> Arc<Queue<K>> {
        self.queue.clone()
    }

    /// Returns a worker that calls `repair`, and does nothing while this process leads, since the leader
    /// repairs anyway.
    pub(crate) fn worker<E, F>(
        &self,
        repair: impl Fn(K) -> F,
    ) -> impl Fn(K) -> BoxFuture<'static, Result<Action, E>>
    where
        E: Send + 'static,
        F: Future<Output = Result<Action, E>> + Send + 'static,
    {
        let leadership = self.leadership.clone();
        move |key| {
            if leadership.check().is_ok() {
                return future::ready(Ok(Action::AwaitChange)).boxed();
            }
            repair(key).boxed()
        }
    }

    /// Enqueues a repair for `change`, unless this process leads.
    pub(crate) fn add(&self, repair: &K, change: &Change) {
        let delay = match (&change.before, &change.after) {
            (Some(_), Some(_)) => CHANGED_DELAY,
            (None, Some(_)) => CREATED_DELAY,
            (_, None) => return,
        };
        if self.leadership.check().is_err() {
            self.queue.add_after(repair.clone(), delay);
        }
    }
}

impl<K> Clone for StandbyRepairs<K> {
    fn clone(&self) -> Self {
        Self {
            queue: self.queue.clone(),
            leadership: self.leadership.clone(),
        }
    }
}
