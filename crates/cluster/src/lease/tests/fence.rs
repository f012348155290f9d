//! Requests that the fence forwards.

use std::sync::{Arc, Mutex};

use http::{Request, Response, StatusCode};
use kube::{Client, client::Body};
use serde_json::json;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tower::{BoxError, service_fn};

use super::{
    super::{LeaderTerm, Leadership, Moment, NotLeading, fenced},
    *,
};
use crate::{
    events::Events,
    kind::kinds,
    requests::{Cluster, RequestError},
};

/// An API server that returns these answers in order, and records the requests.
struct Server {
    received: Arc<Mutex<Vec<String>>>,
    claims: watch::Sender<Option<LeaderTerm>>,
    cluster: Cluster,
}

impl Server {
    /// `answer` gets the method of each request for a ConfigMap, and may end the leadership.
    fn new(
        answer: impl Fn(&watch::Sender<Option<LeaderTerm>>) -> StatusCode + Send + Sync + 'static,
    ) -> Self {
        let (claims, receiver) = watch::channel(None);
        let received = Arc::new(Mutex::new(Vec::new()));
        let (log, sender, answer) = (received.clone(), claims.clone(), Arc::new(answer));
        let service = service_fn(move |request: Request<Body>| {
            let (log, sender, answer) = (log.clone(), sender.clone(), answer.clone());
            async move {
                let is_discovery = !request.uri().path().contains("/namespaces/");
                let body = if is_discovery {
                    json!({"resources": [
                        {"name": "configmaps", "kind": "ConfigMap", "namespaced": true},
                        {"name": "events", "kind": "Event", "namespaced": true},
                    ]})
                } else {
                    log.lock().unwrap().push(request.method().to_string());
                    json!({"kind": "ConfigMap", "metadata": {"name": "c"}})
                };
                let code = if is_discovery {
                    StatusCode::OK
                } else {
                    answer(&sender)
                };
                let response = Response::builder().status(code);
                Ok::<_, BoxError>(response.body(Body::from(body.to_string().into_bytes())).unwrap())
            }
        });
        let client = fenced(
            Client::new(service, "default"),
            Leadership::elected("me".into(), receiver),
        );
        Self {
            received,
            claims,
            cluster: Cluster::new(client, Duration::from_secs(10)),
        }
    }

    fn lead(&self, duration: Duration) {
        self.claims.send_replace(Some(LeaderTerm {
            holder: "me".into(),
            expiry: Moment::now().after(duration),
        }));
    }

    async fn write(&self) -> Result<(), RequestError> {
        let key = kinds::CONFIG_MAP.object(Some("n"), "c");
        self.cluster
            .patch(&key, &json_patch::Patch(Vec::new()), "m")
            .await
            .map(|_| ())
    }

    fn requests(&self) -> Vec<String> {
        self.received.lock().unwrap().clone()
    }
}

#[tokio::test]
async fn only_writes_require_a_current_claim() {
    let server = Server::new(|_| StatusCode::OK);
    let key = kinds::CONFIG_MAP.object(Some("n"), "c");
    let error = server.write().await.unwrap_err();
    assert!(matches!(error, RequestError::NotLeading { .. }), "{error}");
    assert!(NotLeading::is_cause_of(&error));
    server.lead(Duration::ZERO);
    assert!(NotLeading::is_cause_of(&server.write().await.unwrap_err()));
    assert!(server.cluster.read(&key).await.unwrap().is_some());
    assert_eq!(server.requests(), ["GET"]);
    server.lead(Duration::from_secs(60));
    server.write().await.unwrap();
    assert_eq!(server.requests(), ["GET", "PATCH"]);
}

#[tokio::test]
async fn every_attempt_of_a_write_checks_leadership() {
    let server = Server::new(|claims| {
        claims.send_replace(None);
        StatusCode::TOO_MANY_REQUESTS
    });
    server.lead(Duration::from_secs(60));
    let error = server.write().await.unwrap_err();
    assert!(NotLeading::is_cause_of(&error), "{error}");
    assert_eq!(server.requests(), ["PATCH"]);
}

#[tokio::test]
async fn overloaded_responses_are_retried() {
    let first = std::sync::atomic::AtomicBool::new(true);
    let server = Server::new(move |_| {
        if first.swap(false, std::sync::atomic::Ordering::SeqCst) {
            StatusCode::SERVICE_UNAVAILABLE
        } else {
            StatusCode::OK
        }
    });
    server.lead(Duration::from_secs(60));
    server.write().await.unwrap();
    assert_eq!(server.requests(), ["PATCH", "PATCH"]);
}

#[tokio::test]
async fn events_require_leadership_too() {
    let server = Server::new(|_| StatusCode::OK);
    let (events, publisher) = Events::new(server.cluster.clone(), None);
    let about = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"}});
    events.note(&about, "Try", "Tried", "a note");
    let stop = CancellationToken::new();
    stop.cancel();
    publisher.run(stop).await;
    assert_eq!(server.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn without_an_election_all_writes_pass() {
    assert_eq!(Leadership::always().check(), Ok(()));
    Leadership::always().wait_until_acquired().await;
}

#[tokio::test]
async fn elapsed_time_starts_with_leadership() {
    let (claims, receiver) = watch::channel(None);
    let standby = Leadership::elected("me".into(), receiver);
    let leads = tokio::spawn(async move { standby.wait_until_acquired().await });
    tokio::time::sleep(Duration::from_millis(20)).await;
    let before = tokio::time::Instant::now();
    claims.send_replace(Some(LeaderTerm {
        holder: "me".into(),
        expiry: Moment::now().after(Duration::from_secs(60)),
    }));
    let since = leads.await.unwrap();
    assert!(since.elapsed() <= before.elapsed());
}
