//! A server of two hooks, and what it answers.

use http::{HeaderMap, Request, Response, StatusCode, header::CONTENT_TYPE};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use runtime_hooks::{
    Catalog,
    cluster_api::{
        BeforeClusterCreate, BeforeClusterCreateResponse, BeforeClusterUpgrade, BeforeClusterUpgradeRequest,
        BeforeClusterUpgradeResponse,
    },
    server::{CallContext, HandlerOptions, HookServer, IntoHookResponse},
};
use serde_json::Value;

/// Where `first` answers.
pub(crate) const FIRST: &str = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclusterupgrade/first";

/// Where Discovery is answered.
pub(crate) const DISCOVERY: &str = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery";

/// What a server answers.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

// === impl Answer ===

impl Answer {
    pub(crate) async fn of(response: Response<Full<Bytes>>) -> Self {
        let (parts, body) = response.into_parts();
        Self {
            status: parts.status,
            headers: parts.headers,
            body: body.collect().await.unwrap().to_bytes().to_vec(),
        }
    }

    /// A response of a hook: every one says of what type it is.
    pub(crate) fn response(&self) -> Value {
        assert_eq!(
            self.status,
            StatusCode::OK,
            "{}",
            String::from_utf8_lossy(&self.body)
        );
        assert_eq!(self.headers[CONTENT_TYPE], "application/json");
        let response: Value = serde_json::from_slice(&self.body).unwrap();
        assert!(response["kind"].as_str().unwrap().ends_with("Response"));
        assert_eq!(response["apiVersion"], "hooks.runtime.cluster.x-k8s.io/v1alpha1");
        response
    }

    /// What a response says, and whether the handler succeeded.
    pub(crate) fn said(&self) -> (String, String) {
        let response = self.response();
        // A message is left out where it says nothing.
        let text = |field: &str| {
            response
                .get(field)
                .map_or("", |text| text.as_str().unwrap())
                .to_owned()
        };
        (text("status"), text("message"))
    }
}

/// A server whose handler `first` answers `BeforeClusterUpgrade` by `handler`.
pub(crate) fn first<F>(
    handler: impl Fn(BeforeClusterUpgradeRequest, CallContext) -> F + Send + Sync + 'static,
) -> HookServer
where
    F: Future<Output: IntoHookResponse<BeforeClusterUpgrade>> + Send + 'static,
{
    HookServer::new(Catalog::of_cluster_api())
        .handle::<BeforeClusterUpgrade, _>("first", HandlerOptions::default(), handler)
        .unwrap()
}

/// A server whose handler `first` says from which version to which a Cluster named so goes; `create` says nothing.
pub(crate) fn echo() -> HookServer {
    let server = first(async |request, _| BeforeClusterUpgradeResponse {
        message: format!(
            "{} {} {}",
            request.cluster.name().unwrap_or_default(),
            request.from_kubernetes_version,
            request.to_kubernetes_version
        ),
        ..Default::default()
    });
    let nothing = async |_, _| BeforeClusterCreateResponse::default();
    server
        .handle::<BeforeClusterCreate, _>("create", HandlerOptions::default(), nothing)
        .unwrap()
}

pub(crate) async fn send(server: &HookServer, request: Request<Full<Bytes>>) -> Answer {
    Answer::of(server.answer(request).await).await
}

pub(crate) async fn post(server: &HookServer, path: &str, body: impl Into<Bytes>) -> Answer {
    send(server, Request::post(path).body(Full::new(body.into())).unwrap()).await
}
