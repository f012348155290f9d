//! A controller as a whole: a router that fills its queue, and a worker that begins once every watch has seen all and
//! this process leads.

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

/// Runs `router` and a worker until `shutdown`. `begin` is called once, when the worker begins, and gives what
/// reconciles: whatever that remembers begins with this process's leadership. It begins although objects of `dispensable` kinds
/// may not all have been seen.
///
/// # Errors
///
/// When a reconciliation panicked.
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
        // Half a view of the cluster is none: what was not seen yet looks as if it were gone. Kinds that others serve may
        // never be seen; who looks for what is gone of them asks `unlisted`.
        tokio::select! {
            () = context.watches.wait_until_complete_except(&dispensable) => {}
            () = shutdown.cancelled() => return Ok(()),
        }
        // One that stands by keeps its watches and its queue up to date, so that it can go on at once.
        let since = tokio::select! {
            since = context.leadership.acquired() => since,
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
                "Starting workers while these kinds are listed"
            );
        } else {
            warn!(
                controller = settings.controller,
                kinds = unlisted.join("; "),
                "Starting workers although these kinds cannot be listed; what needs them waits"
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
