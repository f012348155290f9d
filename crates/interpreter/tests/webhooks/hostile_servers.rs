//! Misbehaving servers.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures::stream;
use http::{
    Response, StatusCode,
    header::{LOCATION, RETRY_AFTER},
};
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use serde_json::Value;
use test_authority::TestAuthority;

use crate::served::{RawResponse, Served, health};

fn whole(status: StatusCode, body: impl Into<Bytes>) -> RawResponse {
    let mut response = Response::new(Full::new(body.into()).boxed_unsync());
    *response.status_mut() = status;
    response
}

/// A valid response to any request.
async fn healthy(request: http::Request<hyper::body::Incoming>) -> RawResponse {
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let request: Value = serde_json::from_slice(&body).unwrap();
    let response = serde_json::json!({"uid": request["request"]["uid"], "successful": true, "healthy": true});
    whole(
        StatusCode::OK,
        serde_json::json!({"response": response}).to_string(),
    )
}

#[tokio::test]
async fn an_invalid_answer_is_an_error_in_time() {
    let authority = TestAuthority::new("first");
    let server = Served::start_raw(&authority, async |request| match request.uri().path() {
        "/redirect" => {
            let mut response = whole(StatusCode::FOUND, "");
            let to = "https://webhook.system.svc/healthy".parse().unwrap();
            response.headers_mut().insert(LOCATION, to);
            response
        }
        "/healthy" => healthy(request).await,
        "/large" => whole(StatusCode::OK, " ".repeat((16 << 20) + 1)),
        "/large-error" => whole(StatusCode::BAD_GATEWAY, "a".repeat(32 << 20)),
        "/no-content" => whole(StatusCode::NO_CONTENT, ""),
        "/page" => whole(StatusCode::OK, "<html>"),
        "/silent" => std::future::pending().await,
        _ => {
            let drip = stream::unfold((), async |()| {
                tokio::time::sleep(Duration::from_millis(20)).await;
                Some((Ok::<_, Infallible>(Frame::data(Bytes::from_static(b" "))), ()))
            });
            Response::new(StreamBody::new(drip).boxed_unsync())
        }
    })
    .await;
    let long = format!("HTTP 502 Bad Gateway: {}", "a".repeat(512));
    for (path, expected) in [
        ("/redirect", "HTTP 302 Found"),
        ("/large", "the answer is larger than 16777216 bytes"),
        ("/large-error", long.as_str()),
        ("/no-content", "HTTP 204 No Content"),
        (
            "/page",
            "cannot decode the response: is not JSON: expected value at line 1 column 1",
        ),
        ("/silent", "no answer within 1.0s"),
        ("/drip", "no answer within 1.0s"),
    ] {
        let started = Instant::now();
        let said = health(&server.interpreter(&authority.pem(), path)).await;
        assert_eq!(said, Err(expected.to_owned()), "{path}");
        assert!(started.elapsed() < Duration::from_secs(20), "{path}");
    }
    assert_eq!(
        health(&server.interpreter(&authority.pem(), "/healthy")).await,
        Ok(true)
    );
}

#[tokio::test]
async fn a_server_may_postpone_a_call_within_its_timeout() {
    let authority = TestAuthority::new("first");
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let server = Served::start_raw(&authority, move |request| {
        let turn = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            let path = request.uri().path().to_owned();
            let postponed = |after: &str| {
                let mut response = whole(StatusCode::TOO_MANY_REQUESTS, "busy");
                response.headers_mut().insert(RETRY_AFTER, after.parse().unwrap());
                response
            };
            match path.as_str() {
                "/twice" if turn < 2 => postponed("0"),
                "/twice" => healthy(request).await,
                "/always" => postponed("0"),
                "/long" => postponed("60"),
                _ => whole(StatusCode::TOO_MANY_REQUESTS, "busy"),
            }
        }
    })
    .await;
    for (path, expected, times) in [
        ("/twice", Ok(true), 3),
        ("/always", Err("HTTP 429 Too Many Requests: busy".to_owned()), 11),
        ("/long", Err("HTTP 429 Too Many Requests: busy".to_owned()), 1),
        ("/never", Err("HTTP 429 Too Many Requests: busy".to_owned()), 1),
    ] {
        asked.store(0, Ordering::SeqCst);
        assert_eq!(
            health(&server.interpreter(&authority.pem(), path)).await,
            expected,
            "{path}"
        );
        assert_eq!(asked.load(Ordering::SeqCst), times, "{path}");
    }
}

#[tokio::test]
async fn a_closed_connection_is_reopened() {
    let authority = TestAuthority::new("first");
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let server = Served::start_raw(&authority, move |request| {
        let turn = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            assert!(turn >= 2, "the connection ends");
            healthy(request).await
        }
    })
    .await;
    assert_eq!(health(&server.interpreter(&authority.pem(), "/")).await, Ok(true));
    assert_eq!(asked.load(Ordering::SeqCst), 3);
}
