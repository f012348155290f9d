//! What the API server says of itself: its version, and the kinds that it serves just now.

use http::Request;
use serde_json::Value;
use windlass_object::object;

use crate::{
    kind::Kind,
    request_subject::RequestSubject,
    requests::{Cluster, RequestError},
};

// === impl Cluster ===

impl Cluster {
    /// The version of Kubernetes, as `/version` writes it: `v1.30.2`; empty where it says none.
    ///
    /// # Errors
    ///
    /// When the API server refuses or is not reached.
    pub async fn kube_version(&self) -> Result<String, RequestError> {
        let answer = self.ask("/version", &"the version of Kubernetes").await?;
        Ok(object::text(&answer, "/gitVersion")
            .unwrap_or_default()
            .to_owned())
    }

    /// Whether a kind is served now. What discovery said before is not looked at: a definition may have gone since.
    ///
    /// # Errors
    ///
    /// When the API server refuses or is not reached; that it does not know the group version is no error.
    pub async fn serves(&self, kind: &Kind) -> Result<bool, RequestError> {
        let root = if kind.api_version.contains('/') {
            "/apis"
        } else {
            "/api"
        };
        let path = format!("{root}/{}", kind.api_version);
        match self.ask(&path, kind).await {
            Ok(list) => Ok(object::items(&list, "/resources").iter().any(|resource| {
                let plural = object::text(resource, "/name").unwrap_or_default();
                object::text(resource, "/kind") == Some(&kind.kind) && !plural.contains('/')
            })),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Under which name a kind is served; `None` where it is not. What discovery said of it before is believed.
    ///
    /// # Errors
    ///
    /// When the API server refuses or is not reached.
    pub async fn resource(&self, kind: &Kind) -> Result<Option<String>, RequestError> {
        match self.served(kind).await {
            Ok(served) => Ok(Some(served.resource.plural)),
            Err(RequestError::UnknownKind { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn ask(&self, path: &str, what: &dyn RequestSubject) -> Result<Value, RequestError> {
        let request = Request::get(path)
            .body(Vec::new())
            .map_err(kube::core::request::Error::BuildRequest);
        self.send("discover", what, request).await
    }
}
