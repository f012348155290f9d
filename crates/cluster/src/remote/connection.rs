//! The connection to the remote cluster, which comes and goes with its kubeconfig.

use std::sync::Arc;

use kube::Client;
use tokio::sync::watch;

use crate::lease::{Leadership, fenced};

/// A client, or why there is none.
type Connected = Result<Client, Arc<str>>;

/// The remote cluster for those who ask it.
#[derive(Clone)]
pub struct RemoteCluster {
    /// Nothing, before anybody has tried to connect.
    connected: watch::Receiver<Option<Connected>>,
}

/// The remote cluster for who connects to it.
#[derive(Default)]
pub struct RemoteConnection {
    fences: Vec<(Leadership, watch::Sender<Option<Connected>>)>,
}

// === impl RemoteCluster ===

impl RemoteCluster {
    /// The client just now, or why there is none.
    pub(crate) fn connection(&self) -> Connected {
        let connected = self.connected.borrow().clone();
        connected.unwrap_or_else(|| Err("its kubeconfig has not been read yet".into()))
    }

    /// Why there is no client now, if somebody has tried to connect.
    pub fn problem(&self) -> Option<Arc<str>> {
        self.connected.borrow().clone()?.err()
    }

    /// The same, of which no [`Self::reconnected`] tells from now on.
    pub(crate) fn latest(&mut self) -> Option<Connected> {
        self.connected.borrow_and_update().clone()
    }

    /// Waits until there is another client, or none any more.
    pub(crate) async fn reconnected(&mut self) {
        // At shutdown nobody connects any more.
        if self.connected.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

// === impl RemoteConnection ===

impl RemoteConnection {
    /// The remote cluster for those who may write to it only with this leadership.
    pub fn fenced(&mut self, leadership: Leadership) -> RemoteCluster {
        let (sender, connected) = watch::channel(None);
        self.fences.push((leadership, sender));
        RemoteCluster { connected }
    }

    /// From now on requests go through `client`, which must not retry by itself.
    pub fn connect(&self, client: &Client) {
        for (leadership, sender) in &self.fences {
            let _ = sender.send_replace(Some(Ok(fenced(client.clone(), leadership.clone()))));
        }
    }

    /// From now on nobody is connected, for this reason.
    pub fn disconnect(&self, problem: &str) {
        for (_, sender) in &self.fences {
            let _ = sender.send_replace(Some(Err(problem.into())));
        }
    }
}
