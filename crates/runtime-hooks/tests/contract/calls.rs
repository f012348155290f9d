//! Calls of handlers (`CallExtension` of Cluster API's `internal/runtime/client/client.go`): caching, failure
//! policies, and combined responses.

use http::StatusCode;
use runtime_hooks::{
    Catalog, Hook, HookRequest,
    client::{CallOptions, HookCallError},
    cluster_api::{BeforeClusterCreate, BeforeClusterCreateRequest, BeforeClusterCreateResponse},
    discovery::{FailurePolicy, Handler},
    response::ResponseStatus,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer, ser::Error};
use serde_json::{Value, json};

use crate::peer::{Answer, Names, Peer, call, client, client_with_catalog, config, handler, pair};

fn answer_with(status: &str, message: &str) -> Answer {
    Answer::json(&json!({"status": status, "message": message}))
}

#[tokio::test]
async fn only_successes_are_cached() {
    let failed = |problem: &str| Err(problem.to_owned());
    for policy in ["fail.ext1", "ignore.ext1"] {
        for (answer, expected, hits) in [
            (answer_with("Success", "a"), Ok("a".to_owned()), 1),
            (
                answer_with("Failure", "a"),
                failed("got failure response with message: a"),
                2,
            ),
            (
                answer_with("A", "a"),
                failed("got unknown response status \"A\" with message: a"),
                2,
            ),
            (
                Answer::Bytes(StatusCode::BAD_GATEWAY, vec![]),
                if policy == "fail.ext1" {
                    failed("HTTP 502 Bad Gateway")
                } else {
                    Ok(String::new())
                },
                2,
            ),
            (
                Answer::text("x"),
                if policy == "fail.ext1" {
                    failed("failed to decode its response: is not JSON: expected value at line 1 column 1")
                } else {
                    Ok(String::new())
                },
                2,
            ),
        ] {
            let (peer, client) = pair(answer.clone()).await;
            for _ in 0..2 {
                let called = call(&client, policy, true).await.map(|response| response.message);
                let expected = expected.clone();
                let expected = expected
                    .map_err(|problem| format!("failed to call extension handler {policy:?}: {problem}"));
                assert_eq!(called, expected);
            }
            assert_eq!(peer.hits(), hits, "{policy}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn a_cached_response_cannot_be_changed() {
    let (_, client) = pair(answer_with("Success", "a")).await;
    let mut response = call(&client, "fail.ext1", true).await.unwrap();
    response.message.push_str(" changed");
    response.status = ResponseStatus::Failure;
    assert_eq!(call(&client, "fail.ext1", true).await.unwrap().message, "a");
}

#[tokio::test]
async fn an_ignored_response_is_dropped() {
    for body in [
        r#"{"retryAfterSeconds": 5, "message": "a", "status": 1}"#,
        r#"{"retryAfterSeconds": 5, "status": "Success""#,
    ] {
        let (_, client) = pair(Answer::text(body)).await;
        let response = call(&client, "ignore.ext1", false).await.unwrap();
        assert_eq!(response, BeforeClusterCreateResponse::default(), "{body}");
    }
}

#[tokio::test]
async fn an_encoding_error_is_never_ignored() {
    struct Unwritable;

    #[derive(Clone, Default, Deserialize, JsonSchema)]
    struct UnwritableRequest {}

    impl Serialize for UnwritableRequest {
        fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(S::Error::custom("on request"))
        }
    }

    impl HookRequest for UnwritableRequest {
        const HAS_SETTINGS: bool = false;
    }

    impl Hook for Unwritable {
        type Request = UnwritableRequest;
        type Response = BeforeClusterCreateResponse;
        const GROUP: &'static str = "hooks.example.com";
        const VERSION: &'static str = "v1";
        const NAME: &'static str = "Unwritable";
    }

    let peer = Peer::start("ext1", answer_with("Success", "")).await;
    let mut catalog = Catalog::new();
    catalog.register::<Unwritable>().unwrap();
    let client = client_with_catalog(catalog, Names::new(&[("ext1", &peer)]));
    let unwritable = Handler {
        hook: Unwritable::reference(),
        ..handler("x", FailurePolicy::Ignore)
    };
    let config = config("ext1", "ext1", &peer.ca_bundle);
    client.registry().register(config, vec![unwritable]).unwrap();
    let called =
        client.call::<Unwritable>("x.ext1", "default", &UnwritableRequest {}, CallOptions::default());
    assert_eq!(
        called.await.unwrap_err().to_string(),
        "failed to call extension handler \"x.ext1\": cannot encode the request: on request"
    );
    assert_eq!(peer.hits(), 0);
}

#[tokio::test]
async fn settings_are_merged_for_one_call_only() {
    let (peer, client) = pair(answer_with("Success", "")).await;
    let mut request = BeforeClusterCreateRequest::default();
    let mut sent = Vec::new();
    for own in [&[][..], &[("b", "request")], &[("a", "request")], &[]] {
        request.settings = own
            .iter()
            .map(|(key, value)| ((*key).into(), (*value).into()))
            .collect();
        let called =
            client.call::<BeforeClusterCreate>("fail.ext1", "default", &request, CallOptions::default());
        called.await.unwrap();
        let asked = peer.asked.lock().pop().unwrap();
        let body: Value = serde_json::from_slice(&asked.body).unwrap();
        sent.push(body["settings"].clone());
    }
    assert_eq!(
        sent,
        [
            json!({"a": "config"}),
            json!({"a": "config", "b": "request"}),
            json!({"a": "request"}),
            json!({"a": "config"}),
        ]
    );
    let registered = client.registry().get("fail.ext1").unwrap().unwrap();
    assert_eq!(
        registered.config.settings["a"], "config",
        "the ExtensionConfig's own settings are unchanged"
    );
}

#[tokio::test]
async fn the_first_failure_is_reported() {
    let ok = || answer_with("Success", "a");
    let not_found = || Answer::Bytes(StatusCode::NOT_FOUND, vec![]);
    let problem = |name: &str, problem: &str| {
        Err(format!(
            "failed to call extension handler \"x.{name}\": {problem}"
        ))
    };
    for (answers, expected, hits) in [
        ([ok(), ok()], Ok("a, a".to_owned()), [1, 1]),
        (
            [answer_with("Failure", "b"), answer_with("Failure", "c")],
            problem("ext1", "got failure response with message: b"),
            [1, 0],
        ),
        (
            [ok(), answer_with("Failure", "c")],
            problem("ext2", "got failure response with message: c"),
            [1, 1],
        ),
        ([not_found(), ok()], problem("ext1", "HTTP 404 Not Found"), [1, 0]),
    ] {
        let [first, second] = answers;
        let (first, second) = (
            Peer::start("ext1", first).await,
            Peer::start("ext2", second).await,
        );
        let client = client(Names::new(&[("ext1", &first), ("ext2", &second)]));
        for (name, peer) in [("ext2", &second), ("ext1", &first)] {
            let handlers = vec![handler("x", FailurePolicy::Fail)];
            client
                .registry()
                .register(config(name, name, &peer.ca_bundle), handlers)
                .unwrap();
        }
        let request = BeforeClusterCreateRequest::default();
        let called = client.call_all::<BeforeClusterCreate>("default", &request, CallOptions::default());
        let called = called
            .await
            .map(|response| response.message)
            .map_err(|error| error.to_string());
        assert_eq!(called, expected);
        assert_eq!([first.hits(), second.hits()], hits);
    }
}

#[tokio::test]
async fn handlers_of_unknown_hooks_are_an_error() {
    let (_, client) = pair(answer_with("Success", "")).await;
    let names = client.handlers::<BeforeClusterCreate>("default").await.unwrap();
    assert_eq!(names, ["fail.ext1", "ignore.ext1"]);
    client.registry().remove("ext1");
    assert!(
        client
            .handlers::<BeforeClusterCreate>("default")
            .await
            .unwrap()
            .is_empty()
    );
    let client = client_with_catalog(Catalog::new(), Names::default());
    let unknown = client.handlers::<BeforeClusterCreate>("default").await;
    assert!(matches!(unknown, Err(HookCallError::UnknownHook(_))));
    let request = BeforeClusterCreateRequest::default();
    let all = client.call_all::<BeforeClusterCreate>("default", &request, CallOptions::default());
    assert!(matches!(all.await, Err(HookCallError::UnknownHook(_))));
}
