//! The connection to the remote cluster, which changes with its kubeconfig.

use std::sync::Arc;

use kube::Client;
use tokio::sync::watch;

use crate::lease::{Leadership, fenced};

/// A client, or why there is none.
type Connected = Result<Client, Arc<str>>;

/// The remote cluster for components that send requests.
#[derive(Clone)]
pub struct RemoteCluster {
    /// `None` before the first attempt to connect.
    connected: watch::Receiver<Option<Connected>>,
}

/// The remote cluster for the component that connects to it.
#[derive(Default)]
pub struct RemoteConnection {
    fences: Vec<(Leadership, watch::Sender<Option<Connected>>)>,
}

impl RemoteCluster {
    /// Returns the current client, or why there is none.
    pub(crate) fn connection(&self) -> Connected {
        let connected = self.connected.borrow().clone();
        connected.unwrap_or_else(|| Err("its kubeconfig has not been read yet".into()))
    }

    /// Returns why there is no client now, after an attempt to connect.
    pub fn problem(&self) -> Option<Arc<str>> {
        self.connected.borrow().clone()?.err()
    }

    /// Returns the current connection, and marks it as seen for [`Self::wait_for_reconnection`].
    pub(crate) fn latest(&mut self) -> Option<Connected> {
        self.connected.borrow_and_update().clone()
    }

    /// Waits until the client changes or is removed.
    pub(crate) async fn wait_for_reconnection(&mut self) {
        // At shutdown the client no longer changes.
        if self.connected.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl RemoteConnection {
    /// Returns the remote cluster for components that may write only with this leadership.
    pub fn fenced(&mut self, leadership: Leadership) -> RemoteCluster {
        let (sender, connected) = watch::channel(None);
        self.fences.push((leadership, sender));
        RemoteCluster { connected }
    }

    /// Sends requests through `client`, which must not retry, from now on.
    pub fn connect(&self, client: &Client) {
        for (leadership, sender) in &self.fences {
            let _ = sender.send_replace(Some(Ok(fenced(client.clone(), leadership.clone()))));
        }
    }

    /// Removes the client, for this reason.
    pub fn disconnect(&self, problem: &str) {
        for (_, sender) in &self.fences {
            let _ = sender.send_replace(Some(Err(problem.into())));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt;
    use http::{Method, Request};
    use kube::client::Body;
    use parking_lot::Mutex;
    use serde_json::json;
    use tower::{BoxError, service_fn};
    use windlass_object::InCluster;

    use super::*;
    use crate::{kind::kinds, requests::Cluster};

    /// Requests to the API server.
    type ReceivedRequests = Arc<Mutex<Vec<(Method, String)>>>;

    /// An API server with one kind.
    fn api_server() -> (Client, ReceivedRequests) {
        let received = ReceivedRequests::default();
        let log = received.clone();
        let service = service_fn(move |request: Request<Body>| {
            log.lock()
                .push((request.method().clone(), request.uri().path().to_owned()));
            let kind = json!({"name": "apiservices", "kind": "APIService", "namespaced": false});
            let answer = json!({"resources": [kind], "metadata": {}})
                .to_string()
                .into_bytes();
            async { Ok::<_, BoxError>(http::Response::new(Body::from(answer))) }
        });
        (Client::new(service, "default"), received)
    }

    fn paths(received: &ReceivedRequests) -> Vec<String> {
        received.lock().drain(..).map(|(_, path)| path).collect()
    }

    #[tokio::test]
    async fn requests_are_sent_to_the_cluster_of_the_object() {
        let ((own, asked_here), (remote, asked_there)) = (api_server(), api_server());
        let mut connection = RemoteConnection::default();
        let cluster = Cluster::new(own, Duration::from_secs(1))
            .with_remote(Some(connection.fenced(Leadership::always())));
        let here = kinds::API_SERVICE.object(None, "a");
        let there = here.clone().in_cluster(InCluster::Remote);
        let problem = |error: crate::RequestError| error.to_string();

        let error = cluster.read(&there).await.map_err(problem).unwrap_err();
        assert!(error.contains("kubeconfig has not been read yet"), "{error}");
        connection.connect(&remote);
        cluster.read(&there).await.unwrap();
        let path = "/apis/apiregistration.k8s.io/v1/apiservices/a";
        let discovery = "/apis/apiregistration.k8s.io/v1";
        assert_eq!(paths(&asked_there), [discovery, path]);
        assert_eq!(paths(&asked_here), [""; 0]);
        cluster.read(&here).await.unwrap();
        let patch = json_patch::Patch::default();
        cluster
            .patch_for_version(&here, patch.clone(), "m")
            .await
            .unwrap();
        assert_eq!(paths(&asked_here), [discovery, path, path], "discovery apart");
        assert_eq!(paths(&asked_there), [""; 0]);

        connection.disconnect("Secret n/s: not found");
        let error = cluster.patch_for_version(&there, patch, "m").await;
        let expected = "patch APIService a in the remote cluster: no connection to the remote cluster: Secret n/s: not found";
        assert_eq!(error.map_err(problem), Err(expected.to_owned()));
        assert_eq!(paths(&asked_there), [""; 0]);
        let alone = Cluster::new(api_server().0, Duration::from_secs(1));
        assert!(alone.read(&there).await.is_err(), "there is no such cluster");
    }

    #[tokio::test]
    async fn writes_to_the_remote_cluster_require_leadership() {
        let (remote, received) = api_server();
        let mut connection = RemoteConnection::default();
        let never = Leadership::elected("this".to_owned(), watch::channel(None).1);
        let fenced = connection.fenced(never);
        let unfenced = connection.fenced(Leadership::always());
        connection.connect(&remote);
        let target = kinds::API_SERVICE.object(None, "a").in_cluster(InCluster::Remote);
        for (remote, writes) in [(fenced, false), (unfenced, true)] {
            let own = Cluster::new(api_server().0, Duration::from_secs(1));
            let cluster = own.with_remote(Some(remote));
            let patch = json_patch::Patch::default();
            let written = cluster.patch_for_version(&target, patch, "m").await;
            assert_eq!(written.is_ok(), writes, "{written:?}");
            let sent = std::mem::take(&mut *received.lock());
            assert_eq!(sent.iter().any(|(method, _)| *method == Method::PATCH), writes);
        }
    }

    #[tokio::test]
    async fn a_new_connection_is_announced_once() {
        let mut connection = RemoteConnection::default();
        let mut remote = connection.fenced(Leadership::always());
        assert!(remote.latest().is_none() && remote.problem().is_none());
        connection.disconnect("a");
        remote.wait_for_reconnection().await;
        assert_eq!(remote.problem().as_deref(), Some("a"));
        assert!(remote.wait_for_reconnection().now_or_never().is_none());
        connection.connect(&api_server().0);
        remote.wait_for_reconnection().await;
        assert!(remote.problem().is_none());
    }
}
