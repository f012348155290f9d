//! Requests to the page with a fake API server.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{Router, body::Body};
use http::{
    Method, Request, Response, StatusCode,
    header::{AUTHORIZATION, CONTENT_SECURITY_POLICY, LOCATION, WWW_AUTHENTICATE},
};
use kube::{Client, client::Body as ClientBody};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tower::{ServiceExt, service_fn};
use windlass_cluster::Cluster;

use crate::router;

/// The requests to the API server, each as the last segment of its path.
type SentRequests = Arc<Mutex<Vec<String>>>;

/// The page with an API server that knows the tokens `admin` and `guest`; only admin may see it.
fn ui() -> (Router, SentRequests) {
    let sent = SentRequests::default();
    let noted = sent.clone();
    let client = Client::new(
        service_fn(move |request: Request<ClientBody>| {
            let noted = noted.clone();
            async move {
                let path = request.uri().path().to_owned();
                let last = path.rsplit('/').next().unwrap_or_default().to_owned();
                noted.lock().push(last.clone());
                let body = request.into_body().collect_bytes().await.unwrap_or_default();
                let body: Value = serde_json::from_slice(&body).unwrap_or_default();
                Ok::<_, Infallible>(answer(&path, &last, body))
            }
        }),
        "default",
    );
    let cluster = Cluster::new(client.clone(), Duration::from_secs(5));
    (router(client, cluster), sent)
}

fn answer(path: &str, last: &str, mut body: Value) -> Response<ClientBody> {
    let spec = &body["spec"];
    body = match last {
        "tokenreviews" => {
            let user = match spec["token"].as_str() {
                Some("down") => return status(500, json!({})),
                Some(name @ ("admin" | "guest")) => json!({
                    "authenticated": true,
                    "user": {"username": name, "uid": "7", "groups": ["g"], "extra": {"scopes": ["a"]}},
                }),
                _ => json!({"error": "not a token"}),
            };
            json!({"metadata": {}, "spec": spec, "status": user})
        }
        "subjectaccessreviews" => {
            let expected = json!({
                "user": spec["user"], "uid": "7", "groups": ["g"], "extra": {"scopes": ["a"]},
                "nonResourceAttributes": {"path": "/ui", "verb": "get"},
            });
            let allowed = *spec == expected && spec["user"] == "admin";
            json!({"metadata": {}, "spec": spec, "status": {"allowed": allowed}})
        }
        "version" => json!({"gitVersion": "v1.36.0"}),
        _ if path.contains("validatingwebhook") => {
            return status(403, json!({"message": "no hooks for you"}));
        }
        "v1" if path.contains("admissionregistration") => json!({"resources": [{
            "name": "validatingwebhookconfigurations", "kind": "ValidatingWebhookConfiguration",
            "namespaced": false, "verbs": ["list"],
        }]}),
        "v1alpha1" => json!({"resources": [
            {"name": "bundledeployments", "kind": "BundleDeployment", "namespaced": false, "verbs": ["list"]},
            {"name": "servingcertificates", "kind": "ServingCertificate", "namespaced": true, "verbs": ["list"]},
        ]}),
        _ => json!({"metadata": {}, "items": []}),
    };
    status(200, body)
}

fn status(code: u16, body: Value) -> Response<ClientBody> {
    let mut response = Response::new(ClientBody::from(body.to_string().into_bytes()));
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    response
}

async fn send(ui: &Router, method: Method, path: &str, token: Option<&str>) -> (Response<()>, String) {
    let mut request = Request::builder().method(method).uri(path);
    if let Some(token) = token {
        request = request.header(AUTHORIZATION, format!("Bearer {token}"));
    }
    let request = request.body(Body::empty()).unwrap();
    let (head, body) = ui.clone().oneshot(request).await.unwrap().into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    (
        Response::from_parts(head, ()),
        String::from_utf8(body.to_vec()).unwrap(),
    )
}

#[tokio::test]
async fn only_authorized_users_see_the_page() {
    let (ui, _) = ui();
    for (token, expected, words) in [
        (None, 401, "kubectl create token"),
        (Some("stranger"), 401, "does not know this token"),
        (Some("guest"), 403, "guest is not allowed to get /ui"),
        (Some("down"), 503, "cannot check access"),
        (Some("admin"), 200, "<!doctype html>"),
    ] {
        let (head, body) = send(&ui, Method::GET, "/ui", token).await;
        assert_eq!(head.status(), expected, "{token:?}: {body}");
        assert!(
            body.to_lowercase().contains(&words.to_lowercase()),
            "{token:?}: {body:.300}"
        );
        assert_eq!(head.headers().contains_key(WWW_AUTHENTICATE), expected == 401);
        let policy = head.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'"), "{policy}");
        assert!(!body.contains("stranger"), "{body}");
    }
    let (head, _) = send(&ui, Method::POST, "/ui", Some("admin")).await;
    assert_eq!(head.status(), StatusCode::METHOD_NOT_ALLOWED);
    let (head, _) = send(&ui, Method::GET, "/", None).await;
    assert_eq!(head.headers()[LOCATION], "/ui");
    let (head, _) = send(&ui, Method::GET, "/ui/../livez", None).await;
    assert_eq!(head.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn concurrent_viewers_share_one_read() {
    let (ui, sent) = ui();
    for _ in 0..10 {
        send(&ui, Method::GET, "/ui", Some("admin")).await;
        send(&ui, Method::GET, "/ui", Some("stranger")).await;
    }
    let sent = sent.lock().clone();
    let count = |name: &str| sent.iter().filter(|sent| *sent == name).count();
    assert_eq!(count("tokenreviews"), 2, "{sent:?}");
    assert_eq!(count("subjectaccessreviews"), 1, "{sent:?}");
    assert_eq!(count("bundledeployments"), 1, "{sent:?}");
}

#[tokio::test]
async fn an_unreadable_kind_is_named_on_the_page() {
    let (ui, _) = ui();
    let (head, body) = send(&ui, Method::GET, "/ui", Some("admin")).await;
    assert_eq!(head.status(), StatusCode::OK, "{body}");
    assert!(body.contains("no hooks for you"), "{body}");
}
