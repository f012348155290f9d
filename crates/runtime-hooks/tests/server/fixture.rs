//! A server of two hooks, and its responses.

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

/// The path of the handler `first`.
pub(crate) const FIRST: &str = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclusterupgrade/first";

/// The path of Discovery.
pub(crate) const DISCOVERY: &str = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery";

/// A response of the server.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) async fn read(response: Response<Full<Bytes>>) -> Self {
        let (parts, body) = response.into_parts();
        Self {
            status: parts.status,
            headers: parts.headers,
            body: body.collect().await.unwrap().to_bytes().to_vec(),
        }
    }

    /// Returns the body of a hook's response, after checking its type.
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

    /// Returns the status and the message of a response.
    pub(crate) fn outcome(&self) -> (String, String) {
        let response = self.response();
        // An empty message is omitted.
        let text = |field: &str| {
            response
                .get(field)
                .map_or("", |text| text.as_str().unwrap())
                .to_owned()
        };
        (text("status"), text("message"))
    }
}

/// A server whose handler `first` answers `BeforeClusterUpgrade` with `handler`.
pub(crate) fn first<F>(
    handler: impl Fn(BeforeClusterUpgradeRequest, CallContext) -> F + Send + Sync + 'static,
) -> HookServer
where
    F: Future<Output: IntoHookResponse<BeforeClusterUpgrade>> + Send + 'static,
{
    HookServer::new(Catalog::cluster_api())
        .handle::<BeforeClusterUpgrade, _>("first", HandlerOptions::default(), handler)
        .unwrap()
}

/// A server whose handler `first` returns the versions and the name of the Cluster as its message; `create`
/// returns no message.
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
    Answer::read(server.answer(request).await).await
}

pub(crate) async fn post(server: &HookServer, path: &str, body: impl Into<Bytes>) -> Answer {
    send(server, Request::post(path).body(Full::new(body.into())).unwrap()).await
}
