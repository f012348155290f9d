//! What a connection is doing.

use std::{future, sync::Arc, time::Duration};

use tokio::{sync::watch, time::timeout};

/// The requests of one connection, of which HTTP/2 has several at a time.
#[derive(Debug)]
pub(super) struct Activity(watch::Sender<Requests>);

/// A request is under way, until this is dropped.
pub(super) struct UnderWay(Arc<Activity>);

#[derive(Clone, Copy, Debug, Default)]
struct Requests {
    under_way: usize,
    was_asked: bool,
}

// === impl Activity ===

impl Activity {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(watch::Sender::default()))
    }

    /// Says that the head of a request has come.
    pub(super) fn begin(self: &Arc<Self>) -> UnderWay {
        self.0.send_modify(|requests| {
            requests.under_way += 1;
            requests.was_asked = true;
        });
        UnderWay(self.clone())
    }

    /// Whether there was a request.
    pub(super) fn was_asked(&self) -> bool {
        self.0.borrow().was_asked
    }

    /// Ends once nothing was under way for as long as `next`, or for as long as `first` where there was no request yet.
    pub(super) async fn idled(&self, first: Option<Duration>, next: Option<Duration>) {
        let mut changes = self.0.subscribe();
        loop {
            let requests = *changes.borrow_and_update();
            let limit = if requests.was_asked { next } else { first };
            let changed = changes.changed();
            let changed = match limit.filter(|_| requests.under_way == 0) {
                Some(limit) => timeout(limit, changed).await,
                None => Ok(changed.await),
            };
            match changed {
                Ok(Ok(())) => {}
                // Does not happen: the sender is here.
                Ok(Err(_)) => future::pending().await,
                Err(_) => return,
            }
        }
    }
}

// === impl UnderWay ===

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.0.send_modify(|requests| requests.under_way -= 1);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    const FIRST: Duration = Duration::from_secs(10);
    const NEXT: Duration = Duration::from_secs(100);

    async fn idled(activity: &Activity) {
        activity.idled(Some(FIRST), Some(NEXT)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_request_has_a_limit_of_its_own() {
        let activity = Activity::new();
        let begun = Instant::now();
        idled(&activity).await;
        assert_eq!(begun.elapsed(), FIRST);
        drop(activity.begin());
        assert!(activity.was_asked());
        idled(&activity).await;
        assert_eq!(begun.elapsed(), FIRST + NEXT);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_idle_while_one_of_several_requests_is_under_way() {
        let activity = Activity::new();
        let begun = Instant::now();
        let requests = [activity.begin(), activity.begin()];
        tokio::spawn(async move {
            for request in requests {
                tokio::time::sleep(NEXT * 3).await;
                drop(request);
            }
        });
        idled(&activity).await;
        assert_eq!(begun.elapsed(), NEXT * 7);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_limit_nothing_is_idle() {
        let activity = Activity::new();
        assert!(timeout(NEXT * 10, activity.idled(None, None)).await.is_err());
    }
}
