//! What OLM v0's olm-operator does with a ClusterServiceVersion, as far as it matters to who takes an operator over from it.
//!
//! The module of operator-lifecycle-manager is served by no proxy, so this stands in for it. It follows
//! `pkg/controller/operators/olm` and `pkg/controller/install` of that project: the order of the writes, what is looked up by
//! label and what by name, what is put back, what the finalizer deletes, and what the handler of a deletion resets. Where OLM
//! looks every five minutes, this looks every two seconds.

mod certificates;
mod checks;
mod deletion;
mod deployment;
mod install;
mod objects;
mod sync;

use std::sync::Arc;

use kube::Client;
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) use self::objects::{collection, csvs, definitions, owner_labels, owner_reference};
use self::sync::Controller;

/// The stand-in of olm-operator, working until it is dropped.
pub(crate) struct Olm {
    did: Arc<Mutex<Vec<String>>>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

// === impl Olm ===

impl Olm {
    /// Starts it as the cluster admin.
    pub(crate) fn start(client: &Client) -> Self {
        let (did, stop) = (Arc::default(), CancellationToken::new());
        let controller = Controller::new(client.clone(), Arc::clone(&did));
        let task = tokio::spawn(controller.run(stop.clone()));
        Self { did, stop, task }
    }

    /// Ends it. What it has done: a line for each change.
    pub(crate) async fn stop(self) -> Vec<String> {
        self.stop.cancel();
        // It may be in the middle of a request.
        drop(self.task.await);
        Arc::try_unwrap(self.did).map_or_else(|did| did.lock().clone(), Mutex::into_inner)
    }
}
