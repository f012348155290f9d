//! Responses, errors and panics of handlers.

use std::{
    fmt, io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use runtime_hooks::{
    cluster_api::{BeforeClusterUpgrade, BeforeClusterUpgradeRequest, BeforeClusterUpgradeResponse},
    response::ResponseStatus,
    server::HookServer,
};
use serde_json::json;

use crate::fixture::{FIRST, first, post};

struct WithCause;

impl fmt::Display for WithCause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cause = if formatter.alternate() {
            ": no route to host"
        } else {
            ""
        };
        write!(formatter, "no database{cause}")
    }
}

async fn outcome(server: HookServer) -> (String, String) {
    post(&server, FIRST, "{}").await.outcome()
}

fn outcome_of(status: &str, message: &str) -> (String, String) {
    (status.into(), message.into())
}

#[tokio::test]
async fn responses_and_errors_are_returned() {
    let response = |status, message: &str| BeforeClusterUpgradeResponse {
        status,
        message: message.into(),
        ..Default::default()
    };
    let plain = first(move |_, _| async move { response(ResponseStatus::Success, "a") });
    assert_eq!(outcome(plain).await, outcome_of("Success", "a"));
    let failed = first(move |_, _| async move { response(ResponseStatus::Failure, "b") });
    assert_eq!(outcome(failed).await, outcome_of("Failure", "b"));
    let odd = first(move |_, _| async move { response(ResponseStatus::Unknown("Maybe".into()), "c") });
    assert_eq!(outcome(odd).await, outcome_of("Maybe", "c"));
    let good = first(move |_, _| async move { Ok::<_, io::Error>(response(ResponseStatus::Success, "d")) });
    assert_eq!(outcome(good).await, outcome_of("Success", "d"));
    type Response = BeforeClusterUpgradeResponse;
    let text = first(async |_, _| Err::<Response, _>("e"));
    assert_eq!(outcome(text).await, outcome_of("Failure", "e"));
    let cause = first(async |_, _| Err::<Response, _>(WithCause));
    assert_eq!(
        outcome(cause).await,
        outcome_of("Failure", "no database: no route to host")
    );
}

#[tokio::test]
async fn a_response_has_all_its_fields() {
    let server = first(async |_, _| Err::<BeforeClusterUpgradeResponse, _>("no"));
    assert_eq!(
        post(&server, FIRST, "{}").await.response(),
        json!({
            "kind": "BeforeClusterUpgradeResponse", "apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1",
            "status": "Failure", "message": "no", "retryAfterSeconds": 0,
        })
    );
}

#[tokio::test]
async fn a_panic_is_reported_without_its_message() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let server = first(move |_, _| {
        let call = counted.fetch_add(1, Ordering::SeqCst);
        assert_ne!(call, 0, "the secret is 42");
        async move {
            tokio::task::yield_now().await;
            assert_ne!(call, 1, "the secret is {}", 42);
            BeforeClusterUpgradeResponse::default()
        }
    });
    for _ in 0..2 {
        let answer = post(&server, FIRST, "{}").await;
        assert_eq!(answer.outcome(), outcome_of("Failure", "handler panicked"));
        assert!(!String::from_utf8_lossy(&answer.body).contains("42"));
    }
    assert_eq!(outcome(server).await, outcome_of("Success", ""));
}

#[tokio::test]
async fn a_handler_gets_the_context_of_its_call() {
    let server = first(async |request, call| BeforeClusterUpgradeResponse {
        message: format!(
            "{} {} {} {}",
            call.handler,
            call.hook.hook,
            call.remaining().as_secs_f32().ceil(),
            request.to_kubernetes_version,
        ),
        ..Default::default()
    });
    let request = BeforeClusterUpgradeRequest {
        to_kubernetes_version: "v2".into(),
        ..Default::default()
    };
    let response = server
        .call_directly::<BeforeClusterUpgrade>("first", request)
        .await;
    assert_eq!(response.unwrap().message, "first BeforeClusterUpgrade 10 v2");
}
