//! Watches of the remote cluster.

use std::{sync::Arc, time::Duration};

use http::{Request, Response, StatusCode};
use kube::{Client, client::Body};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::Instant;
use tower::{BoxError, service_fn};
use windlass_object::{InCluster, ObjectKey, names};
use windlass_trust::injection::CaSource;

use super::RemoteConnection;
use crate::{Cluster, Index, Kind, kind::kinds, lease::Leadership, watch::Watch, watch_loop::run_watch};

fn service(version: &str) -> Value {
    json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": "a", "resourceVersion": version, "annotations": {names::INJECT_CA_FROM: "n/hook"}},
    })
}

fn remote() -> Kind {
    kinds::API_SERVICE.in_cluster(InCluster::Remote)
}

#[test]
fn objects_of_two_clusters_are_distinct() {
    let index = Index::new();
    let watches = [kinds::API_SERVICE, remote()].map(Watch::all);
    let mut changes = index.subscribe();
    for (watch, version) in watches.iter().zip(["1", "2"]) {
        index.apply(watch, service(version));
    }
    let changed: Vec<_> = std::iter::from_fn(|| changes.try_recv().ok())
        .map(|change| change.key.cluster)
        .collect();
    assert_eq!(changed, [InCluster::Local, InCluster::Remote]);
    for (kind, version) in [(kinds::API_SERVICE, "1"), (remote(), "2")] {
        let found = index.find(&kind.object(None, "a")).unwrap();
        assert_eq!(found["metadata"]["resourceVersion"], version);
        assert_eq!(index.objects(&kind).len(), 1);
        assert!(index.is_target(&kind));
    }
    let source = CaSource::ServingCertificate {
        namespace: "n".to_owned(),
        name: "hook".to_owned(),
    };
    let targets: Vec<_> = index.targets(&source).into_keys().collect();
    let of = |kind: &Kind| kind.object(None, "a");
    assert_eq!(targets, [of(&kinds::API_SERVICE), of(&remote())]);
    index.delete(&watches[0], &of(&kinds::API_SERVICE));
    assert_eq!(
        index.targets(&source).into_keys().collect::<Vec<_>>(),
        [of(&remote())]
    );
    assert!(!index.is_target(&kinds::SECRET.in_cluster(InCluster::Remote)));
}

#[test]
fn added_kinds_belong_to_the_local_cluster() {
    let index = Index::new();
    let gateways = json!({
        "apiVersion": "windlass.dev/v1alpha1", "kind": "InjectionTarget", "metadata": {"name": "gateways"},
        "spec": {"group": "example.com", "version": "v1", "kind": "Gateway", "plural": "gateways",
            "paths": [{"path": "/spec/caBundle"}]},
    });
    index.apply(&Watch::all(kinds::INJECTION_TARGET), gateways);
    let gateway = Kind::new("example.com/v1", "Gateway");
    assert!(index.is_target(&gateway));
    assert!(!index.is_target(&gateway.clone().in_cluster(InCluster::Remote)));
    let watched = index.target_watches();
    let of = |cluster| {
        watched
            .iter()
            .filter(move |watch| watch.kind.cluster == cluster)
            .count()
    };
    assert_eq!(of(InCluster::Local), of(InCluster::Remote) + 1);
}

/// An API server of APIServices whose watches end immediately with this code.
fn api_server(watched: StatusCode) -> (Client, Arc<Mutex<Vec<Instant>>>) {
    let lists = Arc::<Mutex<Vec<Instant>>>::default();
    let log = lists.clone();
    let service = service_fn(move |request: Request<Body>| {
        let query = request.uri().query().unwrap_or_default();
        let is_list = request.uri().path().ends_with("/apiservices") && !query.contains("watch=true");
        let (code, answer) = if query.contains("sendInitialEvents=true") {
            (StatusCode::UNPROCESSABLE_ENTITY, failure("Invalid", 422))
        } else if query.contains("watch=true") {
            (watched, failure("InternalError", watched.as_u16()))
        } else if is_list {
            log.lock().push(Instant::now());
            let list = json!({
                "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIServiceList",
                "metadata": {"resourceVersion": "7"}, "items": [service("6")],
            });
            (StatusCode::OK, list)
        } else {
            let kind = json!({"name": "apiservices", "kind": "APIService", "namespaced": false});
            (StatusCode::OK, json!({"resources": [kind]}))
        };
        let answer = Response::builder()
            .status(code)
            .body(Body::from(answer.to_string().into_bytes()));
        async { answer.map_err(BoxError::from) }
    });
    (Client::new(service, "default"), lists)
}

fn failure(reason: &str, code: u16) -> Value {
    json!({"kind": "Status", "status": "Failure", "message": "", "reason": reason, "code": code})
}

/// Watches APIServices of the remote cluster for some time.
async fn run_for(time: Duration, index: &Index, cluster: &Cluster, notes: &Mutex<Vec<Option<String>>>) {
    let served: ObjectKey = kinds::SECRET.object(Some("n"), "windlass-cert");
    let note = |problem| notes.lock().push(problem);
    let _ = tokio::time::timeout(
        time,
        run_watch(cluster, index, &Watch::all(remote()), &served, &note),
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn objects_are_unknown_without_a_watch_and_lists_are_retried_with_backoff() {
    let (client, lists) = api_server(StatusCode::INTERNAL_SERVER_ERROR);
    let mut connection = RemoteConnection::default();
    let own = Client::new(
        service_fn(|_: Request<Body>| async { Err::<Response<Body>, BoxError>("unexpected request".into()) }),
        "default",
    );
    let cluster = Cluster::new(own, Duration::from_secs(30));
    let cluster = cluster.with_remote(Some(connection.fenced(Leadership::always())));
    let (index, notes, watch) = (Index::new(), Mutex::default(), Watch::all(remote()));

    run_for(Duration::from_secs(10), &index, &cluster, &notes).await;
    assert!(notes.lock().is_empty(), "no attempt to connect: {notes:?}");
    connection.disconnect("Secret n/s: not found");
    run_for(Duration::from_secs(10), &index, &cluster, &notes).await;
    assert_eq!(notes.lock().pop(), Some(Some("Secret n/s: not found".to_owned())));
    assert!(!index.is_complete(&watch));

    connection.connect(&client);
    let started = Instant::now();
    run_for(Duration::from_secs(120), &index, &cluster, &notes).await;
    assert!(!index.is_complete(&watch), "its watch fails");
    let key = remote().object(None, "a");
    assert!(
        index.find(&key).is_some(),
        "outdated objects do not count as absent"
    );
    let lists = lists.lock().clone();
    assert!((3..12).contains(&lists.len()), "{lists:?} since {started:?}");
}

#[tokio::test(start_paused = true)]
async fn a_new_client_lists_again() {
    let (first, asked_first) = api_server(StatusCode::INTERNAL_SERVER_ERROR);
    let (second, asked_second) = api_server(StatusCode::INTERNAL_SERVER_ERROR);
    let mut connection = RemoteConnection::default();
    let remote = connection.fenced(Leadership::always());
    let cluster = Cluster::new(first.clone(), Duration::from_secs(30)).with_remote(Some(remote));
    let (index, notes) = (Index::new(), Mutex::default());
    connection.connect(&first);
    let changing = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        let before = asked_first.lock().len();
        connection.connect(&second);
        tokio::time::sleep(Duration::from_secs(1)).await;
        (before, asked_first.lock().len(), asked_second.lock().len())
    };
    let following = run_for(Duration::from_secs(60), &index, &cluster, &notes);
    let ((before, after, second), ()) = tokio::join!(changing, following);
    assert!(
        before > 0 && after == before && second > 0,
        "{before} {after} {second}"
    );
}
