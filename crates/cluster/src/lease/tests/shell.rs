//! The elector with an API server that stores one Lease.

use std::sync::Arc;

use http::{Method, Request, Response, StatusCode};
use kube::{Client, client::Body};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tower::{BoxError, service_fn};

use super::{
    super::{Candidate, Elector, LEASE, LeaderElectionConfig, Leadership, LeadershipLost},
    *,
};
use crate::{events::Events, requests::Cluster};

/// The shortest possible Lease.
const SHORT: LeaderElectionConfig = LeaderElectionConfig {
    lease_duration: Duration::from_secs(1),
    renew_deadline: Duration::from_millis(600),
    retry_period: Duration::from_millis(100),
};

#[derive(Clone, Default)]
struct Server {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    lease: Option<Value>,
    version: u64,
    down: bool,
}

struct Replica {
    leadership: Leadership,
    released: CancellationToken,
    task: JoinHandle<Result<(), LeadershipLost>>,
}

impl Server {
    async fn answer(self, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let (parts, body) = request.into_parts();
        let sent: Value = serde_json::from_slice(&body.collect_bytes().await?).unwrap_or_default();
        if self.state.lock().down {
            return std::future::pending().await;
        }
        let (code, body) = match parts.uri.path() {
            "/apis/coordination.k8s.io/v1" => {
                let leases = json!({"name": "leases", "kind": "Lease", "namespaced": true});
                (StatusCode::OK, json!({"resources": [leases]}))
            }
            path if path.contains("/leases") => self.lease(&parts.method, sent),
            _ => (StatusCode::CREATED, sent),
        };
        Ok(Response::builder()
            .status(code)
            .body(Body::from(body.to_string().into_bytes()))?)
    }

    fn lease(&self, method: &Method, sent: Value) -> (StatusCode, Value) {
        let mut state = self.state.lock();
        let refuse = |code: StatusCode| {
            let status = json!({"kind": "Status", "status": "Failure", "message": "", "reason": "", "code": code.as_u16()});
            (code, status)
        };
        let stored = state.lease.clone();
        match (method, stored) {
            (&Method::GET, Some(lease)) => return (StatusCode::OK, lease),
            (&Method::GET | &Method::PUT, None) => return refuse(StatusCode::NOT_FOUND),
            (&Method::POST, Some(_)) => return refuse(StatusCode::CONFLICT),
            (&Method::PUT, Some(lease))
                if lease["metadata"]["resourceVersion"] != sent["metadata"]["resourceVersion"] =>
            {
                return refuse(StatusCode::CONFLICT);
            }
            _ => {}
        }
        state.store(sent);
        (StatusCode::OK, state.lease.clone().unwrap_or_default())
    }

    fn replica(&self, name: &str) -> Replica {
        let server = self.clone();
        let service = service_fn(move |request| server.clone().answer(request));
        let client = Client::new(service, "default");
        let cluster = Cluster::new(client, SHORT.renew_deadline);
        let (elector, leadership) = Elector::new(
            cluster.clone(),
            "n",
            LEASE,
            Candidate::new(name.to_owned(), SHORT),
        );
        let released = CancellationToken::new();
        let task = tokio::spawn(elector.run(Events::new(cluster, None).0, released.clone()));
        Replica {
            leadership,
            released,
            task,
        }
    }

    fn holder(&self) -> String {
        let state = self.state.lock();
        let lease = state.lease.as_ref();
        let holder = lease.and_then(|lease| lease["spec"]["holderIdentity"].as_str());
        holder.unwrap_or_default().to_owned()
    }
}

impl State {
    fn store(&mut self, mut lease: Value) {
        self.version += 1;
        lease["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.lease = Some(lease);
    }
}

#[tokio::test]
async fn the_next_replica_leads_when_the_lease_is_released() {
    let server = Server::default();
    let one = server.replica("one");
    one.leadership.wait_until_acquired().await;
    let other = server.replica("other");
    // Longer than a Lease: renewals keep the other replica waiting.
    let waited = tokio::time::timeout(SHORT.lease_duration * 2, other.leadership.wait_until_acquired()).await;
    assert!(waited.is_err() && other.leadership.check().is_err());
    one.leadership.check().unwrap();
    one.released.cancel();
    one.task.await.unwrap().unwrap();
    assert!(one.leadership.check().is_err());
    other.leadership.wait_until_acquired().await;
    assert_eq!(server.holder(), "other");
    let transitions = server
        .state
        .lock()
        .lease
        .as_ref()
        .map(|lease| lease["spec"]["leaseTransitions"].clone());
    assert_eq!(transitions, Some(json!(1)));
}

#[tokio::test]
async fn a_killed_leader_is_replaced_after_its_lease() {
    let server = Server::default();
    let one = server.replica("one");
    one.leadership.wait_until_acquired().await;
    one.task.abort();
    let other = server.replica("other");
    let started = Moment::now();
    other.leadership.wait_until_acquired().await;
    assert!(Moment::now().since_boot - started.since_boot >= SHORT.lease_duration);
    assert_eq!(server.holder(), "other");
}

#[tokio::test]
async fn a_leader_that_cannot_renew_exits() {
    let server = Server::default();
    let one = server.replica("one");
    one.leadership.wait_until_acquired().await;
    server.state.lock().down = true;
    let lost = one.task.await.unwrap().unwrap_err();
    assert!(matches!(lost, LeadershipLost::Expired { .. }), "{lost}");
    assert!(one.leadership.check().is_err());
}

#[tokio::test]
async fn a_leader_that_lost_its_lease_exits_without_writing_it() {
    let server = Server::default();
    let one = server.replica("one");
    one.leadership.wait_until_acquired().await;
    {
        let mut state = server.state.lock();
        let mut lease = state.lease.clone().unwrap();
        lease["spec"]["holderIdentity"] = "other".into();
        state.store(lease);
    }
    let lost = one.task.await.unwrap().unwrap_err();
    assert!(lost.to_string().contains("to other; exiting"), "{lost}");
    assert!(one.leadership.check().is_err());
    assert_eq!(server.holder(), "other");
}

#[tokio::test]
async fn a_standby_replica_does_not_release_the_lease() {
    let server = Server::default();
    let one = server.replica("one");
    one.leadership.wait_until_acquired().await;
    let other = server.replica("other");
    other.released.cancel();
    other.task.await.unwrap().unwrap();
    assert_eq!(server.holder(), "one");
    one.leadership.check().unwrap();
}
