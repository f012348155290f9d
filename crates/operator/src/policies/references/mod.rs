//! Fetches what policies refer to: other objects of the cluster, and answers of servers.
//!
//! ```text
//! DataReference -> References -> ReferredObjects -> WatchedKinds, or the API server
//!                             `-> ReferredServers -> AllowedHosts -> ReferenceTokens -> ReferenceClient
//! ```
//!
//! Fetching holds no evaluation permit, and ends before the timeout of the request: data that takes longer
//! counts as failed.

mod allowed_hosts;
mod condition;
mod named_kinds;
mod objects;
mod reference_client;
mod servers;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tls_tests;
mod tokens;
mod watched_kinds;

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use policy::{Answers, DataReference, FetchedAnswer};
use serde_json::Value;
use tokio::{
    sync::{Semaphore, watch},
    task::JoinError,
    time::{Instant, timeout_at},
};
use tokio_util::sync::CancellationToken;
use windlass_cluster::{Clock, Cluster, Index};

pub use self::{
    allowed_hosts::{AllowedHost, AllowedHosts, InvalidHost},
    servers::ReferenceOptions,
};
pub(super) use self::{condition::record_readability, named_kinds::references};
use self::{objects::ReferredObjects, servers::ReferredServers, watched_kinds::WatchedKinds};
use super::store::PolicyStore;

/// Fetches what policies refer to.
pub(crate) struct References {
    kinds: Arc<WatchedKinds>,
    objects: ReferredObjects,
    servers: ReferredServers,
    /// Limits concurrent reads of objects.
    reads: Semaphore,
}

/// The limits of the reads for one request.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReferenceReading {
    /// When all data must be there.
    pub(super) until: Instant,
    /// Whether the request is a dry run, which must have no side effects.
    pub(super) is_dry_run: bool,
}

/// How many objects are read from the API server at a time.
const READS: usize = 32;

/// The longest read of one reference: several slow reads have to fit into a request.
const LONGEST_READ: Duration = Duration::from_secs(3);

impl References {
    /// Reads objects through `cluster`, whether or not this process leads, and calls servers as `options`
    /// allow.
    pub(crate) fn new(cluster: Cluster, clock: Arc<dyn Clock>, options: &ReferenceOptions) -> Self {
        let kinds = Arc::new(WatchedKinds::new(cluster.clone()));
        Self {
            objects: ReferredObjects::new(cluster.clone(), kinds.clone()),
            servers: ReferredServers::new(cluster, clock, options),
            kinds,
            reads: Semaphore::new(READS),
        }
    }

    /// Returns the servers that policies may call.
    pub(super) fn hosts(&self) -> &AllowedHosts {
        self.servers.hosts()
    }

    /// Watches the kinds that policies name, until `shutdown`.
    ///
    /// # Errors
    ///
    /// When a watch panicked.
    pub(crate) async fn run(
        self: Arc<Self>,
        store: Arc<PolicyStore>,
        index: Arc<Index>,
        shutdown: CancellationToken,
    ) -> Result<(), JoinError> {
        self.kinds.run(&store, &index, shutdown).await
    }

    /// Notifies when a kind that policies name becomes readable or unreadable.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.kinds.changes()
    }

    /// Returns why objects that a policy refers to cannot be read yet; `None` if they can.
    pub(super) fn data_problem(&self, policy: &Value) -> Option<String> {
        condition::problem(policy, &self.kinds)
    }

    /// Fetches all references concurrently, and adds the results to `answers`.
    pub(super) async fn read(
        &self,
        wanted: Vec<DataReference>,
        reading: ReferenceReading,
        answers: &mut Answers,
    ) {
        let read = wanted.into_iter().map(async |reference| {
            let answer = self.read_one(&reference, reading).await;
            (reference, answer)
        });
        for (reference, answer) in join_all(read).await {
            answers.insert(reference, answer);
        }
    }

    async fn read_one(&self, reference: &DataReference, reading: ReferenceReading) -> FetchedAnswer {
        let until = reading.until.min(Instant::now() + LONGEST_READ);
        let answer = async {
            match reference {
                DataReference::Http(request) => self.servers.answer(request, reading.is_dry_run).await,
                reference => {
                    // The semaphore is never closed.
                    let _permit = self.reads.acquire().await;
                    self.objects.answer(reference).await
                }
            }
        };
        let answer = timeout_at(until, answer).await;
        answer.unwrap_or_else(|_| FetchedAnswer::Failed("no answer in time".to_owned()))
    }
}
