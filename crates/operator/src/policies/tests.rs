//! Answers of the policy server to requests.

use std::{sync::Arc, time::Duration};

use axum::{
    body::{Body, to_bytes},
    http::{Request, Response, StatusCode},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use kube::Client;
use policy::Engines;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tower::{BoxError, ServiceExt, service_fn};
use webhook_transport::server::ConnectedClient;
use windlass_cluster::{Cluster, Index, Kind, SystemClock, kinds as cluster_kinds, watch::Watch};

use super::{
    AuditLedger, MUTATE_PATH, PolicyMetrics, PolicyServer, PolicyStore, ReferenceOptions, References,
    VALIDATE_PATH, kinds,
};

/// A server with these policies. The first `unlisted` kinds are not listed yet.
struct Server {
    server: Arc<PolicyServer>,
}

impl Server {
    async fn start(policies: &[Value], unlisted: usize) -> Self {
        let index = Arc::new(Index::new());
        for watch in kinds::watches().skip(unlisted) {
            index.begin_relist(&watch);
            index.finish_relist(&watch);
        }
        for policy in policies {
            let kind = Kind::named(
                policy["apiVersion"].as_str().unwrap().to_owned(),
                policy["kind"].as_str().unwrap().to_owned(),
            );
            index.apply(&Watch::all(kind), policy.clone());
        }
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "seen"}});
        index.apply(&Watch::all(cluster_kinds::NAMESPACE), namespace);
        let metrics = PolicyMetrics::register(&mut Registry::default());
        let store = Arc::new(PolicyStore::new(index.clone(), Engines::built_in(), metrics));
        let ledger = AuditLedger::new(index.clone(), Arc::new(SystemClock), store.unreported());
        // Only the API server, not the watch, knows the Namespace `unseen`.
        let answering = service_fn(|request: Request<kube::client::Body>| async move {
            let (status, body) = match request.uri().path() {
                "/api/v1" => (
                    200,
                    json!({"resources": [{"name": "namespaces", "kind": "Namespace", "namespaced": false}]}),
                ),
                "/api/v1/namespaces/unseen" => (
                    200,
                    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "unseen", "labels": {"a": "b"}}}),
                ),
                _ => (
                    403,
                    json!({"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden", "message": "no"}),
                ),
            };
            let body = kube::client::Body::from(body.to_string().into_bytes());
            Ok::<_, BoxError>(Response::builder().status(status).body(body).unwrap())
        });
        let client = Client::new(answering, "default");
        Self {
            server: Arc::new(PolicyServer::new(
                store,
                index,
                client.clone(),
                Arc::default(),
                Arc::new(References::new(
                    Cluster::new(client, Duration::from_secs(1)),
                    Arc::new(SystemClock),
                    &ReferenceOptions::default(),
                )),
                Arc::new(ledger),
            )),
        }
    }

    async fn post(&self, path: &str, body: String) -> (StatusCode, String) {
        let client = ConnectedClient {
            address: ([127, 0, 0, 1], 1).into(),
            certificates: Arc::default(),
        };
        let request = Request::post(path)
            .extension(client)
            .body(Body::from(body))
            .unwrap();
        let response = self.server.clone().router().oneshot(request).await.unwrap();
        let status = response.status();
        let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    /// Returns the response to a request, which must be answered.
    async fn send_review(&self, path: &str, request: &Value) -> Value {
        let (status, body) = self.post(path, review(request)).await;
        assert_eq!(status, StatusCode::OK, "{body}");
        let mut answer: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(answer["response"]["uid"], "u-1");
        answer["response"].take()
    }

    /// Returns the object after its creation was reviewed.
    async fn mutated(&self, object: &Value) -> Value {
        let response = self.send_review(MUTATE_PATH, &creation(object)).await;
        assert_eq!(response["allowed"], true, "{response}");
        let mut mutated = object.clone();
        if let Some(patch) = response["patch"].as_str() {
            let patch = STANDARD.decode(patch).unwrap();
            let patch: json_patch::Patch = serde_json::from_slice(&patch).unwrap();
            json_patch::patch(&mut mutated, &patch).unwrap();
        }
        mutated
    }
}

fn review(request: &Value) -> String {
    let mut request = request.clone();
    request["uid"] = "u-1".into();
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).to_string()
}

fn creation(object: &Value) -> Value {
    json!({"operation": "CREATE", "namespace": object["metadata"]["namespace"], "object": object})
}

fn config_map(namespace: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, "name": "c"}})
}

/// A policy that writes its name to `/data/<name>`.
fn name_policy(kind: &str, namespace: Option<&str>, name: &str) -> Value {
    json!({
        "apiVersion": "policy.kcloudlabs.io/v1alpha1", "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "uid": name, "generation": 1},
        "spec": {
            "resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap"}],
            "overrideRules": [{"targetOperations": ["CREATE"], "overriders": {"plaintext": [
                {"op": "add", "path": format!("/data/{name}"), "value": name},
            ]}}],
        },
    })
}

/// A policy whose evaluation always fails.
fn failing_policy(failure_policy: &str) -> Value {
    json!({
        "apiVersion": "policy.kcloudlabs.io/v1alpha1", "kind": "ClusterValidatePolicy",
        "metadata": {"name": "failing", "uid": "f", "generation": 1},
        "spec": {
            "failurePolicy": failure_policy,
            "validateRules": [{"targetOperations": ["CREATE"], "cue": "validate: "}],
        },
    })
}

#[tokio::test]
async fn an_object_is_overridden_by_the_policies_that_select_it() {
    let server = Server::start(
        &[
            name_policy("OverridePolicy", Some("seen"), "own"),
            name_policy("OverridePolicy", Some("other"), "foreign"),
            name_policy("ClusterOverridePolicy", None, "all"),
        ],
        0,
    )
    .await;
    let mutated = server.mutated(&config_map("seen")).await;
    assert_eq!(mutated["data"], json!({"all": "all", "own": "own"}));
    assert_eq!(
        server.mutated(&config_map("unseen")).await["data"],
        json!({"all": "all"})
    );
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "seen", "name": "s"}});
    assert_eq!(server.mutated(&secret).await, secret);
}

#[tokio::test]
async fn deletions_and_other_operations_are_not_changed() {
    let server = Server::start(&[name_policy("ClusterOverridePolicy", None, "all")], 0).await;
    let object = config_map("seen");
    for request in [
        json!({"operation": "DELETE", "oldObject": object}),
        json!({"operation": "UPDATE", "object": object, "oldObject": object}),
    ] {
        let response = server.send_review(MUTATE_PATH, &request).await;
        assert_eq!(response, json!({"uid": "u-1", "allowed": true}));
    }
}

#[tokio::test]
async fn a_failure_denies_only_with_failure_policy_fail() {
    for (failure_policy, allowed) in [("Ignore", true), ("Fail", false)] {
        let server = Server::start(&[failing_policy(failure_policy)], 0).await;
        let response = server
            .send_review(VALIDATE_PATH, &creation(&config_map("seen")))
            .await;
        assert_eq!(response["allowed"], allowed, "{response}");
        if !allowed {
            assert_eq!(response["status"]["code"], 500);
            let message = response["status"]["message"].as_str().unwrap();
            assert!(
                message.starts_with("ClusterValidatePolicy failing: "),
                "{message}"
            );
        }
        let deletion = json!({"operation": "DELETE", "oldObject": config_map("seen")});
        assert_eq!(
            server.send_review(VALIDATE_PATH, &deletion).await["allowed"],
            true
        );
    }
}

#[tokio::test]
async fn a_server_without_all_policies_is_unavailable() {
    let server = Server::start(&[name_policy("OverridePolicy", Some("seen"), "own")], 1).await;
    for path in [MUTATE_PATH, VALIDATE_PATH] {
        let (status, body) = server.post(path, review(&creation(&config_map("seen")))).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{body}");
        assert!(body.contains("not loaded"), "{body}");
    }
}

#[tokio::test]
async fn an_unreadable_namespace_makes_the_answer_unavailable() {
    let server = Server::start(&[], 0).await;
    let (status, body) = server
        .post(MUTATE_PATH, review(&creation(&config_map("secret"))))
        .await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{body}");
    assert!(body.contains("Namespace"), "{body}");
}

#[tokio::test]
async fn an_invalid_review_is_a_bad_request() {
    let server = Server::start(&[], 0).await;
    for path in [MUTATE_PATH, VALIDATE_PATH] {
        for body in ["", "{", "[]", "{}", r#"{"request": {"operation": "CREATE"}}"#] {
            let (status, body) = server.post(path, body.to_owned()).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{body:?}");
            assert!(body.starts_with("not an AdmissionReview"), "{body}");
        }
    }
}

#[tokio::test]
async fn a_policy_is_validated_and_not_evaluated_by_others() {
    let mut everything = name_policy("ClusterOverridePolicy", None, "all");
    everything["spec"]["resourceSelectors"] = json!([]);
    let server = Server::start(&[everything, failing_policy("Fail")], 0).await;
    let mut policy = name_policy("OverridePolicy", Some("seen"), "new");
    assert_eq!(server.mutated(&policy).await, policy);
    assert_eq!(
        server.send_review(VALIDATE_PATH, &creation(&policy)).await["allowed"],
        true
    );
    policy["spec"]["overrideRules"][0]["overriders"]["plaintext"][0]["path"] = "data".into();
    let response = server.send_review(VALIDATE_PATH, &creation(&policy)).await;
    assert_eq!(
        (&response["allowed"], &response["status"]["code"]),
        (&json!(false), &json!(422))
    );
}

#[tokio::test]
async fn a_long_object_is_answered() {
    let server = Server::start(&[name_policy("ClusterOverridePolicy", None, "all")], 0).await;
    let mut object = config_map("seen");
    object["data"] = json!({"long": "a".repeat(1 << 20)});
    assert_eq!(server.mutated(&object).await["data"]["all"], "all");
}
