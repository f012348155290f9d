//! Discovery: the version of the API server, and the kinds that it serves.

use http::Request;
use serde_json::Value;
use windlass_object::object;

use crate::{
    kind::Kind,
    request_subject::RequestSubject,
    requests::{Cluster, RequestError},
};

impl Cluster {
    /// Returns the Kubernetes version from `/version`, such as `v1.30.2`; empty if it is missing.
    ///
    /// # Errors
    ///
    /// When the request fails or is rejected.
    pub async fn kube_version(&self) -> Result<String, RequestError> {
        let answer = self.get_json("/version", &"the version of Kubernetes").await?;
        Ok(object::text(&answer, "/gitVersion")
            .unwrap_or_default()
            .to_owned())
    }

    /// Reports whether a kind is served now. Does not use cached discovery, since the definition may have
    /// been deleted.
    ///
    /// # Errors
    ///
    /// When the request fails or is rejected, except for an unknown group version.
    pub async fn serves(&self, kind: &Kind) -> Result<bool, RequestError> {
        let root = if kind.api_version.contains('/') {
            "/apis"
        } else {
            "/api"
        };
        let path = format!("{root}/{}", kind.api_version);
        match self.get_json(&path, kind).await {
            Ok(list) => Ok(object::items(&list, "/resources").iter().any(|resource| {
                let plural = object::text(resource, "/name").unwrap_or_default();
                object::text(resource, "/kind") == Some(&kind.kind) && !plural.contains('/')
            })),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the resource name of a kind; `None` if it is not served. Uses cached discovery.
    ///
    /// # Errors
    ///
    /// When the request fails or is rejected.
    pub async fn resource(&self, kind: &Kind) -> Result<Option<String>, RequestError> {
        match self.served(kind).await {
            Ok(served) => Ok(Some(served.resource.plural)),
            Err(RequestError::UnknownKind { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn get_json(&self, path: &str, what: &dyn RequestSubject) -> Result<Value, RequestError> {
        let request = Request::get(path)
            .body(Vec::new())
            .map_err(kube::core::request::Error::BuildRequest);
        self.send("discover", what, request).await
    }
}
