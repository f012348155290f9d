//! Concurrent changes of applied objects, with an API server that answers from a list.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use http::{Request, Response};
use http_body_util::BodyExt;
use kube::{Client, client::Body};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tower::{BoxError, service_fn};
use windlass_object::{ObjectKey, names};
use windlass_trust::injection::TargetKinds;

use super::*;
use crate::{Cluster, Index, ServiceAccount, kinds, trim::trim, watch::Watch};

/// Requests, each as its method with its body.
type Requests = Arc<Mutex<Vec<(String, Value)>>>;

/// Creates an applier whose API server serves ConfigMaps and Services, and gives these answers to all other
/// requests.
fn applier(answers: Vec<(u16, Value)>) -> (Applier, Requests) {
    applier_with_index(Index::new(), answers)
}

fn applier_with_index(index: Index, answers: Vec<(u16, Value)>) -> (Applier, Requests) {
    let answers = Arc::new(Mutex::new(VecDeque::from(answers)));
    let requests = Requests::default();
    let seen = requests.clone();
    let answering = service_fn(move |request: Request<Body>| {
        let (answers, seen) = (answers.clone(), seen.clone());
        async move {
            let (parts, body) = request.into_parts();
            let (code, answer) = if parts.uri.path() == "/api/v1" {
                let kind = |name: &str, kind: &str| json!({"name": name, "kind": kind, "namespaced": true});
                let kinds = [kind("configmaps", "ConfigMap"), kind("services", "Service")];
                (200, json!({ "resources": kinds }))
            } else {
                let bytes = body.collect().await?.to_bytes();
                let body = serde_json::from_slice(&bytes).unwrap_or_default();
                seen.lock().push((parts.method.to_string(), body));
                answers.lock().pop_front().unwrap_or((404, status(404)))
            };
            let response = Response::builder().status(code);
            Ok::<_, BoxError>(response.body(Body::from(answer.to_string().into_bytes()))?)
        }
    });
    let cluster = Cluster::new(Client::new(answering, "default"), Duration::from_secs(60));
    (Applier::new(cluster, Arc::new(index)), requests)
}

fn status(code: u16) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": "", "reason": ""})
}

/// An index with a watched Service.
fn index_with(service: &Value) -> Index {
    let served = kinds::SECRET.object(Some("n"), "windlass-cert");
    let service = serde_json::from_value(service.clone()).unwrap();
    let index = Index::new();
    index.apply(
        &Watch::all(kinds::SERVICE),
        trim(service, &kinds::SERVICE, &served, &TargetKinds::default()).unwrap(),
    );
    index
}

fn desired() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "n", "name": "c"}, "data": {"a": "b"}})
}

pub(super) fn field_owner() -> FieldOwner {
    FieldOwner {
        bundle_deployment: "a".to_owned(),
        uid: "1".to_owned(),
        namespace: "n".to_owned(),
        adopt: vec![],
        account: None,
    }
}

/// Returns the API server's response to an apply.
fn apply_response(body: &Value) -> Value {
    let mut made = body.clone();
    made["metadata"]["uid"] = "u".into();
    made["metadata"]["managedFields"] = json!([{"manager": names::INSTALL, "operation": "Apply"}]);
    made
}

#[tokio::test]
async fn creating_an_object_never_adopts_another() {
    let (applier, requests) = applier(vec![(404, status(404)), (201, apply_response(&desired()))]);
    let outcome = applier.ensure(&desired(), &field_owner()).await.unwrap();
    assert_eq!(outcome, Outcome::Written);
    let requests = requests.lock();
    let methods: Vec<_> = requests.iter().map(|(method, _)| method.as_str()).collect();
    assert_eq!(methods, ["GET", "PATCH"]);
    let metadata = &requests[1].1["metadata"];
    assert_eq!(metadata["resourceVersion"], "1");
    assert_eq!(metadata["annotations"][names::APPLIED_AS], "1/ConfigMap/n/c");
}

#[tokio::test]
async fn a_concurrently_created_object_is_foreign() {
    let mut theirs = desired();
    theirs["metadata"]["managedFields"] = json!([{"manager": "kubectl", "operation": "Update"}]);
    let (applier, _) = applier(vec![(404, status(404)), (409, status(409)), (200, theirs)]);
    let error = applier.ensure(&desired(), &field_owner()).await.unwrap_err();
    assert!(matches!(error, ApplyError::Foreign { .. }), "{error}");
    assert!(error.to_string().contains("field manager kubectl"), "{error}");
}

#[tokio::test]
async fn a_lost_label_is_restored_and_a_copy_is_not_touched() {
    let erased = apply_response(&desired());
    let (applier_of_erased, requests) = applier(vec![(200, erased), (200, apply_response(&desired()))]);
    let outcome = applier_of_erased
        .ensure(&desired(), &field_owner())
        .await
        .unwrap();
    assert_eq!((outcome, requests.lock().len()), (Outcome::Written, 2));
    assert_eq!(
        requests.lock()[1].1["metadata"]["uid"],
        "u",
        "the write is guarded by the observed version"
    );
    let mut copy = desired();
    copy["metadata"]["labels"] = json!({names::BUNDLE_DEPLOYMENT: "a"});
    copy["metadata"]["managedFields"] = json!([{"manager": "velero", "operation": "Update"}]);
    let (applier, requests) = applier(vec![(200, copy)]);
    let error = applier.ensure(&desired(), &field_owner()).await.unwrap_err();
    assert!(matches!(error, ApplyError::Foreign { .. }), "{error}");
    assert_eq!(requests.lock().len(), 1);
}

#[tokio::test]
async fn a_service_with_another_selector_is_repaired_at_any_size() {
    for (length, asks) in [(10, vec!["PATCH"]), (100_000, vec!["GET", "PATCH"])] {
        let desired = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"namespace": "n", "name": "s", "annotations": {"note": "x".repeat(length)}},
            "spec": {"selector": {"app": "a"}, "sessionAffinity": "None"},
        });
        let as_applied = apply_response(&apply_body(&desired, &field_owner()));
        let unchanged = vec![(200, as_applied.clone())];
        let (applier, requests) = applier_with_index(index_with(&as_applied), unchanged);
        let outcome = applier.ensure(&desired, &field_owner()).await.unwrap();
        assert_eq!(
            (outcome, requests.lock().len()),
            (Outcome::Unchanged, asks.len() - 1)
        );

        let mut changed = as_applied.clone();
        changed["spec"]["selector"] = json!({"app": "b"});
        let mut answers = vec![(200, changed.clone()), (200, as_applied.clone())];
        answers.drain(..2 - asks.len());
        let (applier, requests) = applier_with_index(index_with(&changed), answers);
        let outcome = applier.ensure(&desired, &field_owner()).await.unwrap();
        assert_eq!(outcome, Outcome::Written);
        let methods: Vec<_> = requests.lock().iter().map(|(method, _)| method.clone()).collect();
        assert_eq!(methods, asks);
    }
}

#[tokio::test]
async fn ensure_existing_does_not_create_objects_that_a_late_watch_shows() {
    let desired = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"namespace": "n", "name": "s", "annotations": {"note": "x".repeat(100_000)}},
    });
    let index = index_with(&apply_response(&apply_body(&desired, &field_owner())));
    let (applier, requests) = applier_with_index(index, vec![(404, status(404))]);
    let outcome = applier.ensure_existing(&desired, &field_owner()).await.unwrap();
    assert_eq!(outcome, None);
    let methods: Vec<_> = requests.lock().iter().map(|(method, _)| method.clone()).collect();
    assert_eq!(methods, ["GET"]);
}

#[tokio::test]
async fn a_contest_names_the_other_writer() {
    let mut answers = vec![(404, status(404)), (201, apply_response(&desired()))];
    for _ in 0..30 {
        let mut theirs = apply_response(&desired());
        theirs["data"]["a"] = "c".into();
        let entry = json!({"manager": "fighter", "operation": "Update", "time": "2026-01-01T00:00:00Z"});
        theirs["metadata"]["managedFields"]
            .as_array_mut()
            .unwrap()
            .push(entry);
        answers.extend([(200, theirs), (200, apply_response(&desired()))]);
    }
    let (applier, _) = applier(answers);
    let mut outcomes = Vec::new();
    for _ in 0..21 {
        outcomes.push(applier.ensure(&desired(), &field_owner()).await.unwrap());
    }
    assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Written));
    let last = applier.ensure(&desired(), &field_owner()).await.unwrap();
    assert_eq!(last, Outcome::Contested);
    let contested = applier.contested("a");
    assert_eq!(contested.len(), 1);
    assert_eq!(contested[0].by.as_deref(), Some("fighter"));
    assert!(contested[0].is_news && contested[0].wait.is_some());
    assert_eq!(applier.contested("b"), []);
}

#[tokio::test]
async fn a_moving_entry_is_released_at_its_new_index() {
    let ours = json!({"manager": names::INSTALL, "operation": "Update"});
    let theirs = json!({"manager": "kube-aggregator", "operation": "Update", "subresource": "status"});
    let with = |entries: Value| {
        let mut object = desired();
        object["metadata"]["managedFields"] = entries;
        object
    };
    let live = with(json!([ours]));
    let moved = with(json!([theirs, ours]));
    let key = ObjectKey::from_object(&live).unwrap();
    for (answers, is_released, methods) in [
        (vec![(200, live.clone())], true, &["PATCH"][..]),
        (
            vec![(422, status(422)), (200, moved.clone()), (200, moved.clone())],
            true,
            &["PATCH", "GET", "PATCH"],
        ),
        // Another client has released the entry, or deleted the object.
        (
            vec![(422, status(422)), (200, with(json!([theirs])))],
            true,
            &["PATCH", "GET"],
        ),
        (
            vec![(422, status(422)), (404, status(404))],
            true,
            &["PATCH", "GET"],
        ),
        (vec![(403, status(403))], false, &["PATCH"]),
        (
            (0..9)
                .flat_map(|_| [(422, status(422)), (200, moved.clone())])
                .collect(),
            false,
            &[
                "PATCH", "GET", "PATCH", "GET", "PATCH", "GET", "PATCH", "GET", "PATCH",
            ],
        ),
    ] {
        let (applier, requests) = applier(answers);
        let released = applier.release(&key, &live, names::INSTALL).await;
        assert_eq!(released.is_ok(), is_released, "{released:?}");
        let requests = requests.lock();
        let sent: Vec<_> = requests.iter().map(|(method, _)| method.as_str()).collect();
        assert_eq!(sent, methods);
        if let Some((_, patch)) = requests.get(2) {
            assert_eq!(patch[2]["path"], "/metadata/managedFields/1");
        }
    }
}

#[tokio::test]
async fn reads_use_windlass_and_writes_use_the_account() {
    let requests = Arc::<Mutex<Vec<(String, Option<String>)>>>::default();
    let log = requests.clone();
    let answering = service_fn(move |request: Request<Body>| {
        let kinds = json!([{"name": "configmaps", "kind": "ConfigMap", "namespaced": true}]);
        let (code, answer) = match (request.method().as_str(), request.uri().path()) {
            (_, "/api/v1") => (200, json!({ "resources": kinds })),
            ("GET", _) => (404, status(404)),
            _ => (200, apply_response(&desired())),
        };
        if request.uri().path() != "/api/v1" {
            let user = request.headers().get("impersonate-user");
            let user = user.map(|user| user.to_str().unwrap().to_owned());
            log.lock().push((request.method().to_string(), user));
        }
        let response = Response::builder().status(code);
        let response = response.body(Body::from(answer.to_string().into_bytes()));
        async { Ok::<_, BoxError>(response?) }
    });
    let cluster = Cluster::new(Client::new(answering, "default"), Duration::from_secs(60));
    let applier = Applier::new(cluster, Arc::new(Index::new()));
    let owner = FieldOwner {
        account: Some(ServiceAccount::new("n", "tenant")),
        ..field_owner()
    };
    applier.ensure(&desired(), &owner).await.unwrap();
    applier.dry_run(&desired(), &owner).await.unwrap();
    let tenant = || Some("system:serviceaccount:n:tenant".to_owned());
    let expected = [("GET", None), ("PATCH", tenant()), ("PATCH", tenant())];
    assert_eq!(
        *requests.lock(),
        expected.map(|(method, user)| (method.to_owned(), user))
    );
    for own in [kinds::SERVING_CERTIFICATE, kinds::POD, kinds::REPLICA_SET] {
        assert_eq!(owner.service_account_for(&own), None, "{own}");
    }
    assert_eq!(
        owner.service_account_for(&kinds::DEPLOYMENT),
        owner.account.as_ref()
    );
}
