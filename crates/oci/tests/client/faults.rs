//! Registries that fail, are slow, or stop in the middle of a response.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use axum::body::Body;
use futures::{StreamExt, stream};
use oci::ContentDigest;

use super::*;
use test_registry::{cut_off, response, stalled, with_header};

/// Makes the registry respond with this status and no body.
fn status(registry: &TestRegistry, status: u16) {
    registry.fail(move |_, _| {
        Some(response(
            status,
            r#"{"errors":[{"code":"DENIED","message":"hunter2"}]}"#,
        ))
    });
}

#[tokio::test]
async fn each_status_has_one_clear_error() {
    let registry = TestRegistry::start().await;
    let host = registry.host();
    for (code, reason, times, message) in [
        (
            403,
            "RegistryForbids",
            1,
            format!("{host} forbids access to team/app (DENIED)"),
        ),
        (
            404,
            "ImageNotFound",
            1,
            format!("{host}/team/app:v1 is not found on {host}"),
        ),
        (
            418,
            "RegistryAnswerInvalid",
            1,
            format!("{host} answers HTTP 418 I'm a teapot (DENIED) to {host}/team/app:v1"),
        ),
        (
            429,
            "TooManyRequests",
            3,
            format!("{host} limits the rate of requests"),
        ),
        (
            500,
            "RegistryUnavailable",
            3,
            format!("{host} answers HTTP 500 Internal Server Error"),
        ),
        (
            503,
            "RegistryUnavailable",
            3,
            format!("{host} answers HTTP 503 Service Unavailable"),
        ),
        (
            302,
            "RegistryAnswerInvalid",
            1,
            format!("{host} answers HTTP 302 Found (DENIED) to {host}/team/app:v1"),
        ),
    ] {
        status(&registry, code);
        let error = pulled(&registry).await.unwrap_err();
        assert_eq!((error.reason(), error.to_string()), (reason, message));
        assert_eq!(registry.count("/v2/team/app/manifests/v1"), times, "{code}");
        assert_eq!(error.is_transient(), times > 1, "{code}");
    }
}

#[tokio::test]
async fn transient_errors_are_retried() {
    let registry = TestRegistry::start().await;
    let image = packed("one");
    registry.store("v1", &image);
    let layer = image.blobs()[0].clone();
    for fault in ["503", "429", "cut off", "short"] {
        let (layer, digest) = (layer.clone(), ContentDigest::compute(&layer).to_string());
        let times = AtomicUsize::new(0);
        registry.fail(move |head, _| {
            let is_bad = head.uri.path().ends_with(&digest) && times.fetch_add(1, Ordering::Relaxed) < 2;
            let half = layer.slice(..layer.len() / 2);
            is_bad.then(|| match fault {
                "503" => response(503, ""),
                "429" => with_header(response(429, ""), "retry-after", "0"),
                "cut off" => cut_off(half, layer.len()),
                _ => response(200, half),
            })
        });
        assert_eq!(content(&pulled(&registry).await.unwrap()), "one", "{fault}");
        assert_eq!(
            registry.count(&ContentDigest::compute(image.blobs()[0]).to_string()),
            3,
            "{fault}"
        );
    }
}

#[tokio::test]
async fn retry_after_is_respected() {
    let registry = TestRegistry::start().await;
    for code in [429, 503] {
        registry.fail(move |_, _| Some(with_header(response(code, ""), "retry-after", "3600")));
        let error = pulled(&registry).await.unwrap_err();
        assert_eq!(error.retry_after(), Some(Duration::from_secs(3600)), "{error}");
        assert!(error.to_string().ends_with(": retry in 3600s"), "{error}");
        assert_eq!(registry.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_layer_that_is_always_truncated_is_refused() {
    let registry = TestRegistry::start().await;
    let image = packed("one");
    registry.store("v1", &image);
    let layer = image.blobs()[0].clone();
    let path = format!("/v2/team/app/blobs/{}", ContentDigest::compute(&layer));
    let long = [&layer[..], b"x"].concat();
    for (answer, reason, times) in [
        ("cut off", "RegistryUnavailable", 3),
        ("short", "ImageTruncated", 3),
        ("long", "ImageTruncated", 1),
    ] {
        let (layer, path, long) = (layer.clone(), path.clone(), long.clone());
        registry.fail(move |head, _| {
            let half = layer.slice(..layer.len() / 2);
            (head.uri.path() == path).then(|| match answer {
                "cut off" => cut_off(half, layer.len()),
                "short" => response(200, half),
                _ => response(200, long.clone()),
            })
        });
        let error = pulled(&registry).await.unwrap_err();
        assert_eq!(error.reason(), reason, "{error}");
        assert_eq!(registry.count("/blobs/"), times + 1, "{answer}");
    }
}

#[tokio::test]
async fn an_idle_registry_times_out() {
    let registry = TestRegistry::start().await;
    registry.store("v1", &packed("one"));
    let mut options = options(&[&registry.host()]);
    (options.idle_timeout, options.attempts) = (Duration::from_millis(200), 2);
    let client = RegistryClient::new(options).unwrap();
    registry.fail(|_, _| Some(stalled("{".into(), 100)));
    let error = client
        .pull(&registry.image("v1"), &no_credentials())
        .await
        .unwrap_err();
    assert_eq!(error.reason(), "RegistryTimeout");
    let message = format!("{} has neither sent nor accepted data for 0.2s", registry.host());
    assert_eq!(error.to_string(), message);
    assert_eq!(registry.requests().len(), 2);
    // The same timeout applies to a server that accepts connections and never responds.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let name = format!("{}/team/app", silent.local_addr().unwrap());
    let error = client.pull(&image(&name), &no_credentials()).await.unwrap_err();
    assert_eq!(error.reason(), "RegistryTimeout", "{error}");
}

#[tokio::test]
async fn a_slow_registry_times_out() {
    let registry = TestRegistry::start().await;
    let mut options = options(&[&registry.host()]);
    options.timeout = Duration::from_millis(400);
    let client = RegistryClient::new(options).unwrap();
    registry.fail(|_, _| {
        let drops = stream::repeat(()).then(|()| async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            Ok::<_, std::convert::Infallible>(" ")
        });
        Some(response(200, Body::from_stream(drops)))
    });
    let error = client
        .pull(&registry.image("v1"), &no_credentials())
        .await
        .unwrap_err();
    let (host, name) = (registry.host(), registry.image("v1"));
    assert_eq!(
        error.to_string(),
        format!("{host} did not finish the transfer of {name} within 0.4s")
    );
}

#[tokio::test]
async fn an_unreachable_registry_is_named() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    drop(listener);
    for insecure in [&[][..], &[host.as_str()]] {
        let client = RegistryClient::new(options(insecure)).unwrap();
        let error = client
            .pull(&image(&format!("{host}/a")), &no_credentials())
            .await
            .unwrap_err();
        assert_eq!(error.reason(), "RegistryUnreachable");
        assert!(
            error
                .to_string()
                .starts_with(&format!("cannot connect to {host}: ")),
            "{error}"
        );
    }
}
