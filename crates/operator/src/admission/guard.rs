//! The HTTP handlers of the guard.

use std::{sync::Arc, time::Duration};

use axum::{
    Json, Router,
    extract::{Extension, Request, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::post,
};
use tracing::{info, warn};
use webhook_transport::server::ConnectedClient;
use windlass_cluster::{Cluster, Index, kinds, telemetry::chain, watch::Watch};
use windlass_object::{names, object};

use super::bodies::Bodies;
use crate::{
    guard::{self, Review},
    removal_obstacles,
};

/// The path for changes of CRDs.
pub const PATH: &str = "/guard";

/// The path for deletions of BundleDeployments.
pub const REMOVAL_PATH: &str = "/guard/removal";

/// The timeout of the request for the operator's own user name. It is shorter than the API server's timeout
/// for the guard.
pub(super) const IDENTIFICATION: Duration = Duration::from_secs(2);

/// What the handlers need to answer AdmissionReviews.
pub(super) struct Guard {
    pub(super) index: Arc<Index>,
    /// Queries the operator's own user name.
    pub(super) cluster: Cluster,
    /// The user of a separate process with the certificate controllers, which injects CA bundles.
    pub(super) certificates: String,
    pub(super) bodies: Arc<Bodies>,
}

pub(super) fn router(guard: Guard) -> Router {
    Router::new()
        .route(PATH, post(answer))
        .route(REMOVAL_PATH, post(answer_removal))
        .with_state(Arc::new(guard))
}

async fn answer(
    State(guard): State<Arc<Guard>>,
    Extension(client): Extension<ConnectedClient>,
    request: Request,
) -> Response {
    let review = match guard
        .bodies
        .read(client.address.ip(), request, Review::read)
        .await
    {
        Ok(review) => review,
        Err(error) => return error.into_response(),
    };
    // Before the cache is synced, a claimed CRD would look unclaimed.
    if !guard.index.is_complete(&Watch::all(kinds::BUNDLE_DEPLOYMENT)) {
        let message = "cache of BundleDeployments not synced yet";
        return (StatusCode::SERVICE_UNAVAILABLE, message).into_response();
    }
    let operator = match guard.cluster.user().await {
        Ok(operator) => operator,
        Err(error) => {
            warn!(error = chain(&error), "Cannot answer an AdmissionReview");
            return (StatusCode::SERVICE_UNAVAILABLE, error.to_string()).into_response();
        }
    };
    let deployment = review
        .owner()
        .and_then(|owner| guard.index.find(&kinds::BUNDLE_DEPLOYMENT.object(None, owner)));
    let operators = [operator, guard.certificates.as_str()];
    let verdict = guard::judge(&review, &operators, deployment.as_deref());
    if let Err(refused) = &verdict {
        info!(user = review.user(), %refused, "Denied a change to a CustomResourceDefinition");
    }
    Json(review.answer(&verdict)).into_response()
}

/// Denies the deletion of a BundleDeployment whose removal could not finish.
async fn answer_removal(
    State(guard): State<Arc<Guard>>,
    Extension(client): Extension<ConnectedClient>,
    request: Request,
) -> Response {
    let review = match guard
        .bodies
        .read(client.address.ip(), request, Review::read_bundle_deployment)
        .await
    {
        Ok(review) => review,
        Err(error) => return error.into_response(),
    };
    if !guard
        .index
        .is_complete(&Watch::all(kinds::CUSTOM_RESOURCE_DEFINITION))
    {
        let message = "cache of CustomResourceDefinitions not synced yet";
        return (StatusCode::SERVICE_UNAVAILABLE, message).into_response();
    }
    let deployment = review.old_object().cloned().unwrap_or_default();
    let owner = object::text(&deployment, "/metadata/name");
    let mut crds = guard.index.objects(&kinds::CUSTOM_RESOURCE_DEFINITION);
    crds.retain(|crd| object::label(crd, names::BUNDLE_DEPLOYMENT) == owner);
    let policy = removal_obstacles::deletion_policy(&deployment);
    let crds = crds.iter().map(AsRef::as_ref);
    let in_use = match removal_obstacles::conversions_in_use(&guard.cluster, policy, crds).await {
        Ok(in_use) => in_use,
        Err(error) => {
            warn!(error = chain(&error), "Cannot answer an AdmissionReview");
            return (StatusCode::SERVICE_UNAVAILABLE, error.to_string()).into_response();
        }
    };
    let verdict = guard::judge_removal(&review, &in_use);
    if let Err(refused) = &verdict {
        info!(user = review.user(), %refused, "Denied the deletion of a BundleDeployment");
    }
    Json(review.answer(&verdict)).into_response()
}

#[cfg(test)]
mod tests {
    use axum::{
        body::{Body, to_bytes},
        http::Response,
    };
    use serde_json::{Value, json};
    use tower::{BoxError, ServiceExt, service_fn};

    use kube::Client;

    use super::*;
    use crate::admission::bodies::LONGEST_BODY;

    const OPERATOR: &str = "system:serviceaccount:windlass-system:windlass";
    const CERTIFICATES: &str = "system:serviceaccount:windlass-system:windlass-certificates";

    /// Sends a request to a guard. The API server returns `identity` as the guard's own user; `is_complete`
    /// tells whether the index is synced.
    async fn send_review(identity: Value, is_complete: bool, question: String) -> (StatusCode, String) {
        let answering = service_fn(move |_: Request<kube::client::Body>| {
            let body = kube::client::Body::from(identity.to_string().into_bytes());
            async move { Ok::<_, BoxError>(Response::new(body)) }
        });
        let index = Index::new();
        let watch = Watch::all(kinds::BUNDLE_DEPLOYMENT);
        index.begin_relist(&watch);
        index.relist(
            &watch,
            json!({"apiVersion": "windlass.dev/v1alpha1", "kind": "BundleDeployment", "metadata": {"name": "sample"}}),
        );
        if is_complete {
            index.finish_relist(&watch);
        }
        let guard = Guard {
            index: Arc::new(index),
            cluster: Cluster::new(Client::new(answering, "default"), IDENTIFICATION),
            certificates: CERTIFICATES.to_owned(),
            bodies: Arc::default(),
        };
        let request = Request::post(PATH)
            .extension(client())
            .body(Body::from(question))
            .unwrap();
        let response = router(guard).oneshot(request).await.unwrap();
        let status = response.status();
        let body = to_bytes(response.into_body(), LONGEST_BODY).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    fn client() -> ConnectedClient {
        ConnectedClient {
            address: ([127, 0, 0, 1], 1).into(),
            certificates: Arc::default(),
        }
    }

    fn identity() -> Value {
        json!({"metadata": {}, "status": {"userInfo": {"username": OPERATOR}}})
    }

    fn deletion(user: &str) -> String {
        let crd = json!({
            "metadata": {"name": "widgets.example.com", "labels": {"windlass.dev/bundle-deployment": "sample"}},
            "spec": {"conversion": {"strategy": "Webhook"}},
        });
        json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": "u-1", "operation": "DELETE", "userInfo": {"username": user}, "oldObject": crd,
                "resource": {"group": "apiextensions.k8s.io", "version": "v1", "resource": "customresourcedefinitions"},
            },
        })
        .to_string()
    }

    #[tokio::test]
    async fn only_the_operator_may_make_guarded_changes() {
        for (user, allowed) in [(OPERATOR, true), (CERTIFICATES, true), ("alice", false)] {
            let (status, body) = send_review(identity(), true, deletion(user)).await;
            let answer: Value = serde_json::from_str(&body).unwrap();
            assert_eq!(status, StatusCode::OK);
            assert_eq!(answer["response"]["allowed"], allowed, "{user}: {answer}");
        }
    }

    #[tokio::test]
    async fn requests_fail_while_the_state_is_unknown() {
        let (status, body) = send_review(identity(), false, deletion("alice")).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{body}");
        let (status, body) = send_review(json!({"metadata": {}}), true, deletion("alice")).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{body}");
        assert!(
            body.contains("cannot determine the operator's own user name"),
            "{body}"
        );
    }

    #[tokio::test]
    async fn an_invalid_review_is_a_bad_request() {
        for body in ["", "{", "[]", "{}"] {
            let (status, said) = send_review(identity(), true, body.to_owned()).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{body:?}");
            assert!(said.starts_with("not an AdmissionReview"), "{said}");
        }
    }

    /// Requests the deletion of a BundleDeployment with this policy, while the cluster has this number of
    /// widgets.
    async fn send_removal(objects: usize, policy: &str, is_complete: bool) -> (StatusCode, Value) {
        let answering = service_fn(move |request: Request<kube::client::Body>| async move {
            let body = if request.uri().path() == "/apis/example.com/v1" {
                json!({"resources": [{"name": "widgets", "kind": "Widget", "namespaced": true}]})
            } else {
                json!({"metadata": {}, "items": vec![json!({"metadata": {"name": "a"}}); objects]})
            };
            let body = kube::client::Body::from(body.to_string().into_bytes());
            Ok::<_, BoxError>(Response::new(body))
        });
        let index = Index::new();
        let watch = Watch::all(kinds::CUSTOM_RESOURCE_DEFINITION);
        index.begin_relist(&watch);
        index.relist(
            &watch,
            json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "widgets.example.com", "labels": {"windlass.dev/bundle-deployment": "sample"}},
                "spec": {
                    "group": "example.com", "names": {"kind": "Widget"}, "conversion": {"strategy": "Webhook"},
                    "versions": [
                        {"name": "v1", "served": true, "storage": true},
                        {"name": "v2", "served": true, "storage": false},
                    ],
                },
                "status": {"storedVersions": ["v1"]},
            }),
        );
        if is_complete {
            index.finish_relist(&watch);
        }
        let guard = Guard {
            index: Arc::new(index),
            cluster: Cluster::new(Client::new(answering, "default"), IDENTIFICATION),
            certificates: CERTIFICATES.to_owned(),
            bodies: Arc::default(),
        };
        let question = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": "u-1", "operation": "DELETE", "userInfo": {"username": "alice"},
                "oldObject": {"metadata": {"name": "sample"}, "spec": {"deletionPolicy": policy}},
                "resource": {"group": "windlass.dev", "version": "v1alpha1", "resource": "bundledeployments"},
            },
        });
        let request = Request::post(REMOVAL_PATH)
            .extension(client())
            .body(Body::from(question.to_string()))
            .unwrap();
        let response = router(guard).oneshot(request).await.unwrap();
        let status = response.status();
        let body = to_bytes(response.into_body(), LONGEST_BODY).await.unwrap();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }

    #[tokio::test]
    async fn a_deletion_that_could_not_finish_is_denied() {
        for (objects, policy, allowed) in [
            (0, "KeepCRDs", true),
            (1, "KeepCRDs", false),
            (1, "KeepStoredVersion", true),
            (1, "DeleteCRDs", true),
        ] {
            let (status, answer) = send_removal(objects, policy, true).await;
            assert_eq!(status, StatusCode::OK);
            assert_eq!(
                answer["response"]["allowed"], allowed,
                "{objects} {policy}: {answer}"
            );
            if !allowed {
                let message = answer["response"]["status"]["message"].as_str().unwrap();
                assert!(message.contains("widgets.example.com") && message.contains("KeepStoredVersion"));
            }
        }
        let (status, _) = send_removal(1, "KeepCRDs", false).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    }
}
