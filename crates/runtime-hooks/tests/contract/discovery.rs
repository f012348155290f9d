//! Discovery (`Discover` of Cluster API's `internal/runtime/client/client.go`): the request, and which
//! answers are accepted.

use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use runtime_hooks::{
    Catalog, Hook, HookMetadata, HookReference,
    cluster_api::{BeforeClusterCreateRequest, BeforeClusterCreateResponse},
    discovery::{FailurePolicy, read_answer},
};
use serde_json::{Value, json};

use crate::peer::{Answer, Names, Peer, call, client, config, pair};

const API_VERSION: &str = "hooks.runtime.cluster.x-k8s.io/v1alpha1";

/// An answer with one handler in which a field is replaced.
fn answer_with(field: &str, value: Value) -> Answer {
    let mut handler = json!({
        "name": "first", "requestHook": {"apiVersion": API_VERSION, "hook": "BeforeClusterCreate"},
    });
    handler[field] = value;
    Answer::json(&json!({"status": "Success", "handlers": [handler]}))
}

/// Discovers a server with this answer; returns the names of its handlers or the error.
async fn discover(answer: Answer) -> Result<Vec<String>, String> {
    let peer = Peer::start("ext1", answer).await;
    let client = client(Names::new(&[("ext1", &peer)]));
    let discovered = client.discover(&config("ext1", "ext1", &peer.ca_bundle)).await;
    let discovered = discovered.map_err(|error| error.to_string())?;
    Ok(discovered
        .handlers
        .into_iter()
        .map(|handler| handler.name)
        .collect())
}

#[tokio::test]
async fn discovery_sends_the_request_of_cluster_api() {
    let peer = Peer::start("ext1", answer_with("name", "first".into())).await;
    let client = client(Names::new(&[("ext1", &peer)]));
    let config = config("ext1", "ext1", &peer.ca_bundle);
    assert!(!config.settings.is_empty(), "settings are not sent");
    client.discover(&config).await.unwrap();
    let asked = peer.asked.lock().pop().unwrap();
    assert_eq!(asked.method, Method::POST);
    assert_eq!(
        asked.uri,
        "/x/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery?timeout=10s"
    );
    let body: Value = serde_json::from_slice(&asked.body).unwrap();
    assert_eq!(
        body,
        json!({"kind": "DiscoveryRequest", "apiVersion": API_VERSION})
    );
}

#[tokio::test]
async fn a_handler_has_a_default_timeout_and_policy() {
    let peer = Peer::start("ext1", answer_with("name", "first".into())).await;
    let client = client(Names::new(&[("ext1", &peer)]));
    let config = config("ext1", "ext1", &peer.ca_bundle);
    for (sent, stored) in [(json!(null), Some(10)), (json!(0), None), (json!(30), Some(30))] {
        peer.set(answer_with("timeoutSeconds", sent.clone()));
        let found = client.discover(&config).await.unwrap();
        assert_eq!(found.handlers[0].timeout_seconds, stored, "{sent}");
        assert_eq!(found.handlers[0].failure_policy, FailurePolicy::Fail);
        client
            .registry()
            .register(config.clone(), found.handlers)
            .unwrap();
        let registered = client.registry().get("first.ext1").unwrap().unwrap();
        let seconds = stored.map_or(10, i32::unsigned_abs).into();
        assert_eq!(registered.timeout, Duration::from_secs(seconds), "{sent}");
    }
}

#[tokio::test]
async fn answers_that_cluster_api_rejects_are_rejected() {
    for (field, value) in [
        ("name", json!("HAS-CAPITAL-LETTERS")),
        ("name", json!("has.full.stops")),
        ("timeoutSeconds", json!(100)),
        ("timeoutSeconds", json!(-1)),
        ("failurePolicy", json!("DONT_FAIL")),
        (
            "requestHook",
            json!({"apiVersion": "too/many/slashes", "hook": "BeforeClusterCreate"}),
        ),
    ] {
        let refused = discover(answer_with(field, value.clone())).await.unwrap_err();
        assert!(refused.starts_with("handlers[0]."), "{value}: {refused}");
    }
    let handler =
        |hook: &str| json!({"name": "ext1", "requestHook": {"apiVersion": API_VERSION, "hook": hook}});
    for twice in [
        ["BeforeClusterCreate"; 2],
        ["BeforeClusterCreate", "GeneratePatches"],
    ] {
        let answer = json!({"status": "Success", "handlers": twice.map(handler)});
        let refused = discover(Answer::json(&answer)).await.unwrap_err();
        assert_eq!(refused, "handlers: duplicate name \"ext1\"");
    }
}

#[tokio::test]
async fn an_unknown_hook_keeps_the_other_handlers() {
    let later = json!({"apiVersion": "hooks.runtime.cluster.x-k8s.io/v9", "hook": "BeforeClusterCreate"});
    assert_eq!(discover(answer_with("requestHook", later)).await, Ok(vec![]));
}

#[tokio::test]
async fn a_failed_discovery_changes_nothing() {
    let json = |value: Value| Answer::json(&value);
    let status = |code: StatusCode| Answer::Bytes(code, br#"{"status": "Success"}"#.into());
    let (peer, client) = pair(json(json!({}))).await;
    let config = config("ext1", "ext1", &peer.ca_bundle);
    for (answer, expected) in [
        (
            json(json!({"status": "Failure", "message": "no database", "handlers": []})),
            "got failure response with message: no database",
        ),
        (json(json!({"status": ""})), "got unknown response status \"\""),
        (
            json(json!({"status": "success"})),
            "got unknown response status \"success\"",
        ),
        (json(json!({})), "got unknown response status \"\""),
        (json(json!([])), "the answer is not JSON: it must be an object"),
        (Answer::text(""), "the answer is not JSON: EOF"),
        (Answer::text("<html>"), "the answer is not JSON: expected value"),
        (
            status(StatusCode::INTERNAL_SERVER_ERROR),
            "HTTP 500 Internal Server Error: {",
        ),
        (status(StatusCode::FOUND), "HTTP 302 Found: {"),
        (status(StatusCode::CREATED), "HTTP 201 Created: {"),
        (
            Answer::Bytes(StatusCode::OK, vec![b' '; 21 << 20]),
            "the answer is larger than 20971520 bytes",
        ),
        (
            Answer::Endless(StatusCode::OK),
            "the answer is larger than 20971520 bytes",
        ),
    ] {
        peer.set(answer);
        let problem = client.discover(&config).await.unwrap_err().to_string();
        assert!(problem.starts_with(expected), "{problem} and not {expected}");
        assert_eq!(client.registry().handlers().unwrap().len(), 2, "{expected}");
    }
    peer.set(json(json!({"status": "Success"})));
    assert!(
        call(&client, "fail.ext1", false).await.is_ok(),
        "the previous handler is still called"
    );
}

#[tokio::test]
async fn answers_that_go_accepts_are_accepted() {
    let hook = json!({"apiVersion": API_VERSION, "hook": "BeforeClusterCreate"});
    let shouted = json!({
        "Status": "Success", "later": {"a": [1]},
        "HANDLERS": [{"Name": "first", "RequestHook": {"APIVERSION": API_VERSION, "Hook": "BeforeClusterCreate"}, "x": 1}],
    });
    let wrong_type = json!({
        "kind": "Wrong", "apiVersion": "wrong/v1", "status": "Success", "handlers": [{"name": "first", "requestHook": hook}],
    });
    let html = Answer::Typed("text/html", wrong_type.to_string().into());
    let plain = Answer::Typed("text/plain; charset=utf-8", shouted.to_string().into());
    let followed = Answer::text(&format!("{wrong_type}\n<p>"));
    for answer in [
        Answer::json(&shouted),
        Answer::json(&wrong_type),
        html,
        plain,
        followed,
    ] {
        let sent = format!("{answer:?}");
        assert_eq!(discover(answer).await, Ok(vec!["first".to_owned()]), "{sent}");
    }
}

#[tokio::test]
async fn the_last_duplicate_field_wins_in_any_case() {
    let hook = format!(r#"{{"apiVersion": "{API_VERSION}", "hook": "BeforeClusterCreate"}}"#);
    for (body, expected) in [
        (r#"{"status": "Failure", "status": "Success"}"#, true),
        (r#"{"status": "Failure", "Status": "Success"}"#, true),
        (r#"{"status": "Success", "STATUS": "Failure"}"#, false),
        (r#"{"status": "Success", "STATUS": null}"#, true),
    ] {
        let answer = Answer::text(body);
        assert_eq!(discover(answer).await.is_ok(), expected, "{body}");
        let (_, client) = pair(Answer::text(body)).await;
        let called = call(&client, "fail.ext1", false).await;
        assert_eq!(
            called.is_ok(),
            expected,
            "discovered and called with the same fields: {body}"
        );
    }
    let twice = format!(
        r#"{{"status": "Success", "handlers": [{{"name": "a.b", "NAME": "b", "requestHook": {hook}}}], "Handlers": null}}"#
    );
    assert_eq!(discover(Answer::text(&twice)).await, Ok(vec!["b".to_owned()]));
}

#[tokio::test]
async fn discovery_times_out_after_ten_seconds() {
    let started = Instant::now();
    let problem = discover(Answer::Silence).await.unwrap_err();
    assert_eq!(problem, "no answer within 10.0s");
    assert!(started.elapsed() >= Duration::from_secs(10));
}

#[test]
fn handlers_of_a_deprecated_version_are_reported() {
    struct Old;

    impl Hook for Old {
        type Request = BeforeClusterCreateRequest;
        type Response = BeforeClusterCreateResponse;
        const GROUP: &'static str = "hooks.runtime.cluster.x-k8s.io";
        const VERSION: &'static str = "v1alpha0";
        const NAME: &'static str = "BeforeClusterCreate";
        const METADATA: HookMetadata = HookMetadata {
            deprecated: true,
            ..HookMetadata::new()
        };
    }

    let mut catalog = Catalog::cluster_api();
    catalog.register::<Old>().unwrap();
    let handler = |name: &str, hook: HookReference| json!({"name": name, "requestHook": {"apiVersion": hook.api_version, "hook": hook.hook}});
    let newer = HookReference {
        api_version: API_VERSION.into(),
        ..Old::reference()
    };
    let answer =
        json!({"status": "Success", "handlers": [handler("new", newer), handler("old", Old::reference())]});
    let found = read_answer(answer.to_string().as_bytes(), &catalog).unwrap();
    assert_eq!(found.handlers.len(), 2, "both versions are called");
    assert_eq!(found.deprecated, [("old".to_owned(), Old::reference())]);
}
