//! HTTP requests and responses (`httpCall` of Cluster API's `internal/runtime/client/client.go`): which
//! responses are accepted, and how much of them is read.

use std::time::{Duration, Instant};

use http::{StatusCode, Version};
use serde_json::json;

use crate::peer::{Answer, Names, Peer, call, client, config, handler, pair};
use runtime_hooks::discovery::FailurePolicy;

const MIB: usize = 1 << 20;

#[tokio::test]
async fn responses_that_go_accepts_are_accepted() {
    for (answer, retry) in [
        (Answer::json(&json!({"status": "Success", "message": "a"})), 0),
        (
            Answer::json(&json!({"Status": "Success", "Message": "a", "RetryAfterSeconds": 5})),
            5,
        ),
        (
            Answer::json(&json!({
                "kind": "DiscoveryResponse", "apiVersion": "wrong/v1", "status": "Success", "message": "a", "later": [{}],
            })),
            0,
        ),
        (
            Answer::json(&json!({"status": "Success", "message": "a", "retryAfterSeconds": null})),
            0,
        ),
        (
            Answer::Typed("text/plain", br#"{"status": "Success", "message": "a"}"#.into()),
            0,
        ),
        (
            Answer::Typed("nonsense", br#"{"status": "Success", "message": "a"}"#.into()),
            0,
        ),
        (
            Answer::text(r#"  {"status": "Success", "message": "a"} {"status": "Failure"}"#),
            0,
        ),
        (Answer::text(r#"{"status": "Success", "message": "a"}<html>"#), 0),
        (
            Answer::text(r#"{"status": "Failure", "STATUS": "Success", "message": "b", "message": "a"}"#),
            0,
        ),
    ] {
        let sent = format!("{answer:?}");
        let (_, client) = pair(answer).await;
        let response = call(&client, "fail.ext1", false)
            .await
            .unwrap_or_else(|error| panic!("{sent}: {error}"));
        assert_eq!(
            (&*response.message, response.retry_after_seconds),
            ("a", retry),
            "{sent}"
        );
    }
}

#[tokio::test]
async fn responses_that_go_rejects_are_rejected() {
    let success = br#"{"status": "Success"}"#;
    let utf_16: Vec<u8> = success.iter().flat_map(|byte| [*byte, 0]).collect();
    let deep = format!("{}{}", r#"{"a":"#.repeat(100_000), "}".repeat(100_000));
    let many = format!("[{}{{}}]", "{},".repeat(2 * MIB));
    for body in [
        [&b"\xef\xbb\xbf"[..], success].concat(),
        [&b"\xff\xfe"[..], &utf_16].concat(),
        utf_16,
        br#"{"status": "Success", "retryAfterSeconds": NaN}"#.into(),
        br#"{"status": "Success", "retryAfterSeconds": 5.5}"#.into(),
        br#"{"status": "Success", "retryAfterSeconds": 1e999}"#.into(),
        br#"{"status": "Success", "retryAfterSeconds": 2147483648}"#.into(),
        br#"{"status": "Success", "message": ["a"]}"#.into(),
        br#"{"status": "Success", "x": Infinity}"#.into(),
        br#"{'status': 'Success'}"#.into(),
        br#"{"status": "Success",}"#.into(),
        br#"// {}"#.into(),
        deep.into(),
        many.into(),
    ] {
        let shown = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
        let (_, client) = pair(Answer::Bytes(StatusCode::OK, body)).await;
        let problem = call(&client, "fail.ext1", false).await.unwrap_err();
        assert!(
            problem.contains("failed to decode its response: "),
            "{shown}: {problem}"
        );
        assert!(call(&client, "ignore.ext1", false).await.is_ok(), "{shown}");
    }
}

#[tokio::test]
async fn a_message_in_another_encoding_is_accepted() {
    let (_, client) = pair(Answer::Bytes(
        StatusCode::OK,
        b"{\"status\": \"Success\", \"message\": \"caf\xe9\"}".into(),
    ))
    .await;
    let response = call(&client, "fail.ext1", false).await.unwrap();
    assert_eq!(response.message, "caf\u{fffd}");
}

#[tokio::test]
async fn only_status_200_is_a_success() {
    for (status, words) in [
        (StatusCode::ACCEPTED, "HTTP 202 Accepted: "),
        (StatusCode::PARTIAL_CONTENT, "HTTP 206 Partial Content: "),
        (StatusCode::PERMANENT_REDIRECT, "HTTP 308 Permanent Redirect: "),
        (
            StatusCode::INTERNAL_SERVER_ERROR,
            "HTTP 500 Internal Server Error: ",
        ),
    ] {
        let (peer, client) = pair(Answer::Bytes(status, vec![b'a'; 21 * MIB])).await;
        let problem = call(&client, "fail.ext1", false).await.unwrap_err();
        let expected = format!(
            "failed to call extension handler \"fail.ext1\": {words}{}",
            "a".repeat(512)
        );
        assert_eq!(problem, expected);
        let started = Instant::now();
        peer.set(Answer::Endless(status));
        call(&client, "fail.ext1", false).await.unwrap_err();
        assert!(
            started.elapsed() < Duration::from_secs(10),
            "the rest of the body is not awaited"
        );
    }
}

#[tokio::test]
async fn an_endless_answer_is_read_up_to_the_limit() {
    let (_, client) = pair(Answer::Endless(StatusCode::OK)).await;
    let problem = call(&client, "fail.ext1", false).await.unwrap_err();
    assert!(
        problem.ends_with("the answer is larger than 20971520 bytes"),
        "{problem}"
    );
}

#[tokio::test]
async fn http_2_connections_are_shared() {
    let success = || Answer::json(&json!({"status": "Success"}));
    let (first, second) = (
        Peer::start("first", success()).await,
        Peer::start("second", success()).await,
    );
    let client = client(Names::new(&[("first", &first), ("second", &second)]));
    let register = |name: &str, service: &str, peer: &Peer| {
        let handlers = vec![handler("x", FailurePolicy::Fail)];
        client
            .registry()
            .register(config(name, service, &peer.ca_bundle), handlers)
            .unwrap();
    };
    register("ext1", "first", &first);
    register("ext2", "first", &first);
    register("ext3", "second", &second);
    for _ in 0..5 {
        for name in ["x.ext1", "x.ext2", "x.ext3"] {
            call(&client, name, false).await.unwrap();
        }
    }
    assert_eq!(
        (first.hits(), first.connections()),
        (10, 1),
        "one connection for two ExtensionConfigs"
    );
    assert_eq!((second.hits(), second.connections()), (5, 1));
    let asked = first.asked.lock().clone();
    assert!(asked.iter().all(|asked| asked.version == Version::HTTP_2));
}
