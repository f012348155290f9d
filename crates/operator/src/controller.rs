//! Runs a controller: a router that fills its queue, and a worker that starts when the watches are synced and
//! this process is the leader.

use std::sync::Arc;

use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use windlass_cluster::{
    Kind,
    lease::LeaderSince,
    worker::{self, Action, Queue, QueueKey, Settings},
};

use super::Context;

/// Runs `router` and a worker until `shutdown`. `begin` is called once, when the worker starts, and returns
/// the reconcile function, whose state therefore starts with the leadership. The worker does not wait for
/// kinds that are `dispensable`.
///
/// # Errors
///
/// If a reconciliation panics.
pub(super) async fn run<K, E, R, F>(
    context: &Context,
    settings: Settings,
    dispensable: impl Fn(&Kind) -> bool,
    queue: Arc<Queue<K>>,
    router: impl Future<Output = ()>,
    begin: impl FnOnce(LeaderSince) -> R,
    shutdown: CancellationToken,
) -> Result<(), JoinError>
where
    K: QueueKey,
    E: std::error::Error + Send + 'static,
    R: Fn(K) -> F,
    F: Future<Output = Result<Action, E>> + Send + 'static,
{
    let work = async {
        // An object that is not listed yet looks deleted, so wait for the first lists. Kinds of other API
        // servers may never be listed: check `unlisted` before treating their objects as deleted.
        tokio::select! {
            () = context.watches.wait_until_complete_except(&dispensable) => {}
            () = shutdown.cancelled() => return Ok(()),
        }
        // A standby process also keeps its watches and its queue up to date, so that it can take over
        // immediately.
        let since = tokio::select! {
            since = context.leadership.wait_until_acquired() => since,
            () = shutdown.cancelled() => return Ok(()),
        };
        let unlisted: Vec<_> = context
            .watches
            .unlisted()
            .iter()
            .map(ToString::to_string)
            .collect();
        if unlisted.is_empty() {
            info!(
                controller = settings.controller,
                "Caches synced; starting workers"
            );
        } else if context.watches.are_listing(&dispensable) {
            info!(
                controller = settings.controller,
                kinds = unlisted.join("; "),
                "Starting workers while these kinds are being listed"
            );
        } else {
            warn!(
                controller = settings.controller,
                kinds = unlisted.join("; "),
                "Starting workers without these kinds, which cannot be listed; objects that need them wait"
            );
        }
        let (metrics, reconcile) = (context.metrics.clone(), begin(since));
        worker::run(settings, queue, metrics, reconcile, shutdown.clone()).await
    };
    tokio::select! {
        result = work => result,
        () = router => Ok(()),
    }
}
