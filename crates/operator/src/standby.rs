//! Repairs by a process that stands by: between a leader that was killed and the next, nobody else would give targets back
//! what somebody takes from them.
//!
//! Leadership decides what is issued. What targets are to carry is recorded in Secrets, which are read anew from the API
//! server for each of these repairs, and a target is written only where it still carries what was seen. So this is one
//! more writer whose last write may be late, and a rotation bears that from any process that was cut off.

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

/// How long a leader has to repair what was changed, before one that stands by does.
const CHANGED: Duration = Duration::from_millis(250);

/// How long a leader has for what was created: it may be about to be given its first trust bundle.
const CREATED: Duration = Duration::from_secs(2);

/// What may have to be repaired by a process that stands by.
pub(crate) struct StandbyRepairs<K> {
    queue: Arc<Queue<K>>,
    leadership: Leadership,
}

// === impl StandbyRepairs ===

impl<K: QueueKey> StandbyRepairs<K> {
    /// Nothing yet. Whether this process stands by is what `leadership` says.
    pub(crate) fn new(leadership: Leadership) -> Self {
        let queue = Arc::new(Queue::new());
        Self { queue, leadership }
    }

    /// What is to be worked on.
    pub(crate) fn queue(&self) -> Arc<Queue<K>> {
        self.queue.clone()
    }

    /// What works on the queue: `repair`, unless this process has come to lead, which repairs anyway.
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

    /// Notes what `change` is about, unless this process leads.
    pub(crate) fn add(&self, repair: &K, change: &Change) {
        let patience = match (&change.before, &change.after) {
            (Some(_), Some(_)) => CHANGED,
            (None, Some(_)) => CREATED,
            (_, None) => return,
        };
        if self.leadership.check().is_err() {
            self.queue.add_after(repair.clone(), patience);
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
