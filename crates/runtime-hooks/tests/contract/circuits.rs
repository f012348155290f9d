//! When a circuit opens, and the common budget of all handlers.

use std::time::Duration;

use runtime_hooks::{
    client::{CallOptions, CircuitBreaker},
    cluster_api::{BeforeClusterCreate, BeforeClusterCreateRequest},
    discovery::FailurePolicy,
};
use serde_json::json;

use crate::peer::{Answer, Names, Peer, call, client, config, handler, pair};

#[tokio::test]
async fn an_invalid_ca_bundle_does_not_open_the_circuit() {
    let client = client(Names::default()).with_circuit_breaker(Some(CircuitBreaker::default()));
    let handlers = vec![handler("x", FailurePolicy::Ignore)];
    client
        .registry()
        .register(config("ext1", "ext1", "garbage"), handlers)
        .unwrap();
    for _ in 0..7 {
        call(&client, "x.ext1", false).await.unwrap_err();
    }
}

#[tokio::test]
async fn a_call_without_time_does_not_open_the_circuit() {
    let peer = Peer::start("ext1", Answer::Bytes(http::StatusCode::BAD_GATEWAY, vec![])).await;
    let breaker = CircuitBreaker {
        failures: 2,
        ..CircuitBreaker::default()
    };
    let client = client(Names::new(&[("ext1", &peer)])).with_circuit_breaker(Some(breaker));
    let handlers = vec![handler("x", FailurePolicy::Fail)];
    client
        .registry()
        .register(config("ext1", "ext1", &peer.ca_bundle), handlers)
        .unwrap();
    let request = BeforeClusterCreateRequest::default();
    for _ in 0..3 {
        call(&client, "x.ext1", false).await.unwrap_err();
        let options = CallOptions {
            budget: Some(Duration::ZERO),
            ..CallOptions::default()
        };
        let called = client.call::<BeforeClusterCreate>("x.ext1", "", &request, options);
        called.await.unwrap_err();
    }
    assert_eq!(peer.hits(), 2);
}

#[tokio::test]
async fn a_budget_may_be_unlimited() {
    let (_peer, client) = pair(Answer::json(&json!({"status": "Success"}))).await;
    let options = CallOptions {
        budget: Some(Duration::MAX),
        ..CallOptions::default()
    };
    let request = BeforeClusterCreateRequest::default();
    let called = client.call::<BeforeClusterCreate>("fail.ext1", "", &request, options);
    called.await.unwrap();
}
