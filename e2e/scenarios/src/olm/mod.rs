//! A stand-in for OLM v0's olm-operator, as far as a takeover of its operators needs it.
//!
//! No proxy serves the module of operator-lifecycle-manager. The stand-in follows
//! `pkg/controller/operators/olm` and `pkg/controller/install` of that project: the order of writes, lookups
//! by label and by name, repairs, the finalizer, and the handler of deletions. OLM resyncs every five
//! minutes; the stand-in every two seconds.

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

/// The stand-in for olm-operator; it runs until it is dropped.
pub(crate) struct Olm {
    did: Arc<Mutex<Vec<String>>>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Olm {
    /// Starts it as the cluster admin.
    pub(crate) fn start(client: &Client) -> Self {
        let (did, stop) = (Arc::default(), CancellationToken::new());
        let controller = Controller::new(client.clone(), Arc::clone(&did));
        let task = tokio::spawn(controller.run(stop.clone()));
        Self { did, stop, task }
    }

    /// Stops it and returns one line per change.
    pub(crate) async fn stop(self) -> Vec<String> {
        self.stop.cancel();
        // A request may be pending.
        drop(self.task.await);
        Arc::try_unwrap(self.did).map_or_else(|did| did.lock().clone(), Mutex::into_inner)
    }
}
