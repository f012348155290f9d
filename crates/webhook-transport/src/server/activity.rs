//! The requests of a connection, to detect that it is idle.

use std::{future, sync::Arc, time::Duration};

use tokio::{sync::watch, time::timeout};

/// The active requests of one connection; HTTP/2 can have several.
#[derive(Debug)]
pub(super) struct Activity(watch::Sender<Requests>);

/// Counts as an active request until it is dropped.
pub(super) struct ActiveRequest(Arc<Activity>);

#[derive(Clone, Copy, Debug, Default)]
struct Requests {
    under_way: usize,
    has_had_request: bool,
}

impl Activity {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(watch::Sender::default()))
    }

    /// Records that the head of a request has arrived.
    pub(super) fn begin(self: &Arc<Self>) -> ActiveRequest {
        self.0.send_modify(|requests| {
            requests.under_way += 1;
            requests.has_had_request = true;
        });
        ActiveRequest(self.clone())
    }

    pub(super) fn has_had_request(&self) -> bool {
        self.0.borrow().has_had_request
    }

    /// Waits until no request was active for the duration `next`, or for `first` if there was no request yet.
    pub(super) async fn wait_until_idle(&self, first: Option<Duration>, next: Option<Duration>) {
        let mut changes = self.0.subscribe();
        loop {
            let requests = *changes.borrow_and_update();
            let limit = if requests.has_had_request { next } else { first };
            let changed = changes.changed();
            let changed = match limit.filter(|_| requests.under_way == 0) {
                Some(limit) => timeout(limit, changed).await,
                None => Ok(changed.await),
            };
            match changed {
                Ok(Ok(())) => {}
                // Cannot happen: `self` holds the sender.
                Ok(Err(_)) => future::pending().await,
                Err(_) => return,
            }
        }
    }
}

impl Drop for ActiveRequest {
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

    async fn wait_until_idle(activity: &Activity) {
        activity.wait_until_idle(Some(FIRST), Some(NEXT)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_request_has_its_own_timeout() {
        let activity = Activity::new();
        let begun = Instant::now();
        wait_until_idle(&activity).await;
        assert_eq!(begun.elapsed(), FIRST);
        drop(activity.begin());
        assert!(activity.has_had_request());
        wait_until_idle(&activity).await;
        assert_eq!(begun.elapsed(), FIRST + NEXT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_with_an_active_request_is_not_idle() {
        let activity = Activity::new();
        let begun = Instant::now();
        let requests = [activity.begin(), activity.begin()];
        tokio::spawn(async move {
            for request in requests {
                tokio::time::sleep(NEXT * 3).await;
                drop(request);
            }
        });
        wait_until_idle(&activity).await;
        assert_eq!(begun.elapsed(), NEXT * 7);
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_timeout_a_connection_is_never_idle() {
        let activity = Activity::new();
        assert!(
            timeout(NEXT * 10, activity.wait_until_idle(None, None))
                .await
                .is_err()
        );
    }
}
