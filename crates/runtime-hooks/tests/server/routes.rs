//! Routing of requests to handlers.

use axum::{Router, body::Body, routing::get};
use http::{Method, Request, StatusCode, header::ALLOW};
use http_body_util::{BodyExt, Full};
use runtime_hooks::{
    cluster_api::{BeforeClusterUpgrade, BeforeClusterUpgradeRequest},
    server::{CallDirectlyError, HookServer},
};
use tower::ServiceExt;

use crate::fixture::{DISCOVERY, FIRST, echo, post, send};

#[tokio::test]
async fn only_post_is_accepted() {
    let server = echo();
    for method in ["GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "ANYTHING"] {
        let method: Method = method.parse().unwrap();
        for (path, expected) in [
            (FIRST, StatusCode::METHOD_NOT_ALLOWED),
            (DISCOVERY, StatusCode::METHOD_NOT_ALLOWED),
            ("/", StatusCode::NOT_FOUND),
        ] {
            let request = Request::builder().method(&method).uri(path);
            let answer = send(&server, request.body(Full::from("{}")).unwrap()).await;
            assert_eq!(answer.status, expected, "{method} {path}");
            if expected == StatusCode::METHOD_NOT_ALLOWED {
                assert_eq!(answer.headers[ALLOW], "POST");
            }
        }
    }
}

#[tokio::test]
async fn only_exact_paths_reach_a_handler() {
    let server = echo();
    let group = "/hooks.runtime.cluster.x-k8s.io";
    for (path, is_found) in [
        (FIRST.to_owned(), true),
        (format!("{FIRST}?timeout=10s"), true),
        (format!("https://example.com:443{FIRST}"), true),
        (format!("{group}/v1alpha1/beforeclustercreate/create"), true),
        (DISCOVERY.to_owned(), true),
        (format!("{group}/v1alpha1/beforeclustercreate/first"), false),
        (format!("{group}/v1alpha1/beforeclusterupgrade"), false),
        (format!("{group}/v1alpha1/BeforeClusterUpgrade/first"), false),
        (format!("{group}/v1/beforeclusterupgrade/first"), false),
        (format!("{FIRST}/"), false),
        (format!("/{FIRST}"), false),
        (format!("{DISCOVERY}/first"), false),
        ("/".to_owned(), false),
        ("/healthz".to_owned(), false),
    ] {
        let status = post(&server, &path, "{}").await.status;
        let expected = if is_found {
            StatusCode::OK
        } else {
            StatusCode::NOT_FOUND
        };
        assert_eq!(status, expected, "{path}");
    }
}

async fn call(server: &HookServer, handler: &str) -> Result<String, CallDirectlyError> {
    let request = BeforeClusterUpgradeRequest::default();
    let response = server
        .call_directly::<BeforeClusterUpgrade>(handler, request)
        .await;
    response.map(|response| response.message)
}

#[tokio::test]
async fn a_server_can_have_a_path_prefix() {
    for prefix in ["", "/", "x", "/x", "/x/", "//x//y/"] {
        let server = echo().with_path_prefix(prefix);
        assert_eq!(call(&server, "first").await.unwrap(), "  ", "{prefix}");
        let at_root = post(&server, FIRST, "{}").await.status;
        assert_eq!(
            at_root.is_success(),
            prefix.trim_matches('/').is_empty(),
            "{prefix}"
        );
    }
    let server = echo().with_path_prefix("/x");
    for (path, expected) in [
        (format!("/x{FIRST}"), StatusCode::OK),
        (format!("/xx{FIRST}"), StatusCode::NOT_FOUND),
        ("/x".to_owned(), StatusCode::NOT_FOUND),
    ] {
        assert_eq!(post(&server, &path, "{}").await.status, expected, "{path}");
    }
}

#[tokio::test]
async fn a_server_can_be_nested_in_an_axum_router() {
    let router = Router::new()
        .nest_service("/hooks", echo())
        .route("/healthz", get(async || "ok"));
    for (path, expected) in [
        (format!("/hooks{FIRST}"), r#""status":"Success""#),
        (format!("/hooks{DISCOVERY}"), r#""name":"first""#),
        (format!("/hooks{FIRST}/x"), "not found"),
        (FIRST.to_owned(), ""),
    ] {
        let request = Request::post(&path).body(Body::from("{}")).unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let body = String::from_utf8(body.to_vec()).unwrap();
        assert!(body.contains(expected), "{path}: {body}");
    }
    let only = Router::new().fallback_service(echo());
    let request = Request::post(FIRST).body(Body::from("{}")).unwrap();
    assert_eq!(only.oneshot(request).await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn calling_a_missing_handler_is_an_error() {
    let error = call(&echo(), "second").await.unwrap_err();
    assert_eq!(error.to_string(), "answered 404 Not Found: not found");
    let error = call(&echo(), "a b").await.unwrap_err();
    assert!(
        error.to_string().starts_with("cannot write the request: "),
        "{error}"
    );
}
