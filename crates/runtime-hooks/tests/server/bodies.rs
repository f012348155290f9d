//! Decoding of requests, as in Cluster API's server.

use http::{Request, header::CONTENT_TYPE};
use http_body_util::Full;
use serde_json::json;

use crate::fixture::{FIRST, echo, post, send};

/// The message of the handler `first` if all fields of a request were decoded.
const UNDERSTOOD: &str = "a v1 v2";

fn success(message: &str) -> (String, String) {
    ("Success".into(), message.into())
}

#[tokio::test]
async fn requests_are_decoded_as_in_go() {
    let server = echo();
    let (from, to) = ("fromKubernetesVersion", "toKubernetesVersion");
    let cluster = json!({"metadata": {"name": "a"}});
    for body in [
        json!({
            "kind": "BeforeClusterUpgradeRequest", "apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1",
            "cluster": cluster, from: "v1", to: "v2",
        }),
        json!({"cluster": cluster, from: "v1", to: "v2"}),
        json!({"kind": "Wrong", "apiVersion": "wrong/v1", "cluster": cluster, from: "v1", to: "v2"}),
        json!({"kind": "", "apiVersion": null, "cluster": cluster, from: "v1", to: "v2"}),
        json!({"Cluster": cluster, "FROMKUBERNETESVERSION": "v1", "tokubernetesversion": "v2"}),
        json!({"cluster": cluster, from: "v1", to: "v2", "later": {"field": [1]}, "settings": null}),
    ] {
        let answer = post(&server, FIRST, body.to_string()).await;
        assert_eq!(answer.outcome(), success(UNDERSTOOD), "{body}");
    }
    for body in ["null", "{}", " {}\n", r#"{"fromKubernetesVersion": null}"#] {
        assert_eq!(
            post(&server, FIRST, body).await.outcome(),
            success("  "),
            "{body}"
        );
    }
}

#[tokio::test]
async fn the_content_type_is_ignored() {
    let server = echo();
    for content_type in [
        None,
        Some("text/plain"),
        Some("application/xml"),
        Some("nonsense"),
    ] {
        let mut request = Request::post(FIRST);
        if let Some(content_type) = content_type {
            request = request.header(CONTENT_TYPE, content_type);
        }
        let answer = send(&server, request.body(Full::from("{}")).unwrap()).await;
        assert_eq!(answer.outcome(), success("  "), "{content_type:?}");
    }
}

#[tokio::test]
async fn an_invalid_request_is_reported() {
    let server = echo();
    for (body, expected) in [
        ("", "is not JSON: EOF while parsing a value at line 1 column 0"),
        ("{", "is not JSON: EOF while parsing an object at line 1 column 1"),
        ("<html>", "is not JSON: expected value at line 1 column 1"),
        ("{} {}", "is not JSON: trailing characters at line 1 column 4"),
        (
            "[]",
            ".: invalid type: sequence, expected struct BeforeClusterUpgradeRequest",
        ),
        (
            "1",
            ".: invalid type: number, expected struct BeforeClusterUpgradeRequest",
        ),
        (
            r#"{"toKubernetesVersion": 1}"#,
            "toKubernetesVersion: invalid type: integer `1`, expected a string",
        ),
        (
            r#"{"Settings": {"a": 1}}"#,
            "settings.a: invalid type: integer `1`, expected a string",
        ),
        (
            r#"{"cluster": "a"}"#,
            "cluster: invalid type: string \"a\", expected a map",
        ),
    ] {
        let (status, message) = post(&server, FIRST, body).await.outcome();
        assert_eq!(status, "Failure", "{body}");
        assert_eq!(message, format!("error unmarshalling request: {expected}"));
    }
    let long = json!({"cluster": "a".repeat(100_000)}).to_string();
    let (_, message) = post(&server, FIRST, long).await.outcome();
    assert_eq!(message.chars().count(), 513, "the value is not quoted in full");
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(post(&server, FIRST, deep).await.outcome().0, "Failure");
}

#[tokio::test]
async fn the_last_duplicate_field_wins_in_any_case() {
    let server = echo();
    for (body, expected) in [
        (
            r#"{"toKubernetesVersion": "v1", "toKubernetesVersion": "v2"}"#,
            "  v2",
        ),
        (
            r#"{"toKubernetesVersion": "v1", "TOKubernetesVersion": "v2"}"#,
            "  v2",
        ),
        (
            r#"{"TOKubernetesVersion": "v1", "toKubernetesVersion": "v2"}"#,
            "  v2",
        ),
        (
            r#"{"toKubernetesVersion": "v2", "TOKubernetesVersion": null}"#,
            "  v2",
        ),
    ] {
        assert_eq!(
            post(&server, FIRST, body).await.outcome(),
            success(expected),
            "{body}"
        );
    }
}

#[tokio::test]
async fn text_in_another_encoding_is_accepted() {
    let server = echo();
    let latin_1 = b"{\"toKubernetesVersion\": \"\xe9\"}";
    assert_eq!(
        post(&server, FIRST, &latin_1[..]).await.outcome(),
        success("  \u{fffd}")
    );
    for body in [
        &b"\xef\xbb\xbf{}"[..],
        b"\xff\xfe{\0}\0",
        b"{\0}\0",
        b"{\"cluster\": {\"a\": NaN}}",
        b"{\"cluster\": {\"a\": -Infinity}}",
        b"{\"cluster\": {\"a\": 1e999}}",
        b"{\"cluster\": {\"a\": 01}}",
    ] {
        let (status, _) = post(&server, FIRST, body).await.outcome();
        assert_eq!(status, "Failure", "{body:?}");
    }
}
