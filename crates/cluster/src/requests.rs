//! Requests to the API servers: objects as JSON, with a timeout per call.

use std::{sync::Arc, time::Duration};

use http::{HeaderValue, Request, header::ACCEPT};
use kube::{
    Client, Resource,
    api::{DeleteParams, DynamicObject, GetParams, Patch, PatchParams, PostParams, Preconditions},
    core::Request as Requests,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use windlass_object::{InCluster, ObjectKey};

pub use crate::request_error::RequestError;
use crate::{
    impersonation::ServiceAccount,
    kind::{Kind, Resources, ServedKind},
    lease::NotLeading,
    remote::RemoteCluster,
    request_subject::RequestSubject,
    retry::send_with_retry,
};

/// Sends requests to the API server of the local cluster and, if configured, of the remote cluster, depending
/// on the cluster of the object.
///
/// Objects are JSON, so that unknown fields are preserved, and so that a decoding error cannot print the
/// content of a Secret.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    remote: Option<RemoteCluster>,
    resources: Arc<Resources>,
    /// The cached user name of `client`.
    pub(super) user: Arc<OnceCell<String>>,
    /// The account to impersonate in the local cluster.
    pub(super) deputy: Option<ServiceAccount>,
    timeout: Duration,
}

/// A resourceVersion that no object has: etcd is at revision 1 before the first write.
const UNUSED_REVISION: &str = "1";

/// Requests a response without the object: for a large object, encoding it is most of the work on both sides.
const METADATA_ONLY: HeaderValue =
    HeaderValue::from_static("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json");

/// The fields that are read of a response.
#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    metadata: AnswerMetadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnswerMetadata {
    resource_version: Option<String>,
}

impl Cluster {
    /// Sends requests through `client`, each with `timeout`.
    pub fn new(client: Client, timeout: Duration) -> Self {
        Self {
            client,
            remote: None,
            resources: Arc::default(),
            user: Arc::default(),
            deputy: None,
            timeout,
        }
    }

    /// Adds a `remote` cluster.
    #[must_use]
    pub fn with_remote(self, remote: Option<RemoteCluster>) -> Self {
        Self { remote, ..self }
    }

    /// Returns the client of the local cluster.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns the remote cluster, if there is one.
    pub fn remote(&self) -> Option<&RemoteCluster> {
        self.remote.as_ref()
    }

    /// Returns the client for the cluster of `subject`.
    fn client_for(
        &self,
        operation: &'static str,
        subject: &dyn RequestSubject,
    ) -> Result<Client, RequestError> {
        let connection = match (subject.cluster(), &self.remote) {
            (InCluster::Local, _) => return Ok(self.client.clone()),
            (InCluster::Remote, Some(remote)) => remote.connection(),
            (InCluster::Remote, None) => Err("none is configured".into()),
        };
        connection.map_err(|problem| RequestError::Disconnected {
            operation,
            object: subject.to_string(),
            problem,
        })
    }

    /// Returns the timeout of a call.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Reads an object; `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// When the API server rejects the request, is not reached, or does not serve the kind.
    pub async fn read(&self, key: &ObjectKey) -> Result<Option<Value>, RequestError> {
        let requests = self.requests_for(key).await?;
        let request = requests.get(&key.name, &GetParams::default());
        match self.send("read", key, request).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates an object.
    ///
    /// # Errors
    ///
    /// As [`Cluster::read`]; a conflict if it exists.
    pub async fn create(&self, object: &Value, manager: &str) -> Result<Value, RequestError> {
        let key = ObjectKey::from_object(object).ok_or(RequestError::Nameless)?;
        let requests = self.requests_for(&key).await?;
        let request = requests.create(&post_params(manager), object.to_string().into_bytes());
        self.send("create", &key, request).await
    }

    /// Applies an object by server-side apply. With `force`, fields of other managers are taken over.
    ///
    /// # Errors
    ///
    /// As [`Cluster::read`]; without `force` a conflict if another manager owns one of the fields.
    pub async fn apply(&self, object: &Value, manager: &str, force: bool) -> Result<Value, RequestError> {
        let key = ObjectKey::from_object(object).ok_or(RequestError::Nameless)?;
        let mut params = PatchParams::apply(manager);
        params.force = force;
        self.send_patch("apply", &key, None, &params, &Patch::Apply(object))
            .await
    }

    /// Creates an object by a single apply, so that `manager` owns its fields as after any other apply. A
    /// plain apply would take over an identical object that was created at the same time. So the body has a
    /// resourceVersion that no object has: the API server compares it with an existing object (409), and
    /// ignores it for a new one.
    ///
    /// # Errors
    ///
    /// As [`Cluster::create`].
    pub async fn create_by_apply(&self, object: &Value, manager: &str) -> Result<Value, RequestError> {
        let mut new = object.clone();
        new["metadata"]["resourceVersion"] = UNUSED_REVISION.into();
        self.apply(&new, manager, false).await
    }

    /// Applies an object with `force` as a dry run, and returns the result.
    ///
    /// # Errors
    ///
    /// As [`Cluster::apply`].
    pub async fn apply_dry_run(&self, object: &Value, manager: &str) -> Result<Value, RequestError> {
        let key = ObjectKey::from_object(object).ok_or(RequestError::Nameless)?;
        let mut params = PatchParams::apply(manager).force();
        params.dry_run = true;
        self.send_patch("apply (dry run)", &key, None, &params, &Patch::Apply(object))
            .await
    }

    /// Replaces an object; its `metadata.resourceVersion` guards against other writers.
    ///
    /// # Errors
    ///
    /// As [`Cluster::read`]; a conflict if the object has changed.
    pub async fn replace(&self, object: &Value, manager: &str) -> Result<Value, RequestError> {
        let key = ObjectKey::from_object(object).ok_or(RequestError::Nameless)?;
        let requests = self.requests_for(&key).await?;
        let request = requests.replace(&key.name, &post_params(manager), object.to_string().into_bytes());
        self.send("replace", &key, request).await
    }

    /// Applies a JSON patch.
    ///
    /// # Errors
    ///
    /// As [`Cluster::read`]; [`RequestError::is_invalid`] if one of its tests failed.
    pub async fn patch(
        &self,
        key: &ObjectKey,
        patch: &json_patch::Patch,
        manager: &str,
    ) -> Result<Value, RequestError> {
        let params = PatchParams::apply(manager);
        self.send_patch("patch", key, None, &params, &Patch::<()>::Json(patch.clone()))
            .await
    }

    /// Applies a JSON patch, and returns only the object's new resourceVersion, which makes the response
    /// small.
    ///
    /// # Errors
    ///
    /// As [`Cluster::patch`].
    pub async fn patch_for_version(
        &self,
        key: &ObjectKey,
        patch: json_patch::Patch,
        manager: &str,
    ) -> Result<Option<String>, RequestError> {
        let client = self.client_for("patch", key)?;
        let requests = self.requests_for(key).await?;
        let params = PatchParams::apply(manager);
        let mut request = requests.patch(&key.name, &params, &Patch::<()>::Json(patch));
        if let Ok(request) = &mut request {
            request.headers_mut().insert(ACCEPT, METADATA_ONLY);
        }
        // Boxed, to save stack space in callers that wait for several requests.
        let answer = Box::pin(async {
            let request = self.with_impersonation(key, request)?;
            let answer: Answer = client.request(request).await?;
            Ok(answer.metadata.resource_version)
        });
        self.within_limit("patch", key, answer).await
    }

    /// Merges `status` into the object's status.
    ///
    /// # Errors
    ///
    /// As [`Cluster::read`].
    pub async fn patch_status(
        &self,
        key: &ObjectKey,
        status: &Value,
        manager: &str,
    ) -> Result<Value, RequestError> {
        self.patch_status_guarded(key, &json!({ "status": status }), manager)
            .await
    }

    /// Merges `patch` into the object and its status. A resourceVersion in it guards against other writers.
    ///
    /// # Errors
    ///
    /// As [`Cluster::read`]; a conflict if the object has changed.
    pub async fn patch_status_guarded(
        &self,
        key: &ObjectKey,
        patch: &Value,
        manager: &str,
    ) -> Result<Value, RequestError> {
        let params = PatchParams::apply(manager);
        let patch = Patch::Merge(patch);
        self.send_patch("patch the status of", key, Some("status"), &params, &patch)
            .await
    }

    /// Deletes an object if its uid is `uid`. Succeeds if it does not exist.
    ///
    /// # Errors
    ///
    /// As [`Cluster::read`]; a conflict if another object has the name.
    pub async fn delete(&self, key: &ObjectKey, uid: Option<&str>) -> Result<(), RequestError> {
        self.delete_with(key, uid, DeleteParams::background()).await
    }

    /// Deletes an object as [`Cluster::delete`] does, and orphans its dependents.
    ///
    /// # Errors
    ///
    /// As [`Cluster::delete`].
    pub async fn orphan(&self, key: &ObjectKey, uid: Option<&str>) -> Result<(), RequestError> {
        self.delete_with(key, uid, DeleteParams::orphan()).await
    }

    /// Deletes an object as [`Cluster::delete`] does, in the foreground: it exists until its dependents are
    /// deleted, for example the pods of a Deployment.
    ///
    /// # Errors
    ///
    /// As [`Cluster::delete`].
    pub async fn delete_after_dependents(
        &self,
        key: &ObjectKey,
        uid: Option<&str>,
    ) -> Result<(), RequestError> {
        self.delete_with(key, uid, DeleteParams::foreground()).await
    }

    async fn delete_with(
        &self,
        key: &ObjectKey,
        uid: Option<&str>,
        mut params: DeleteParams,
    ) -> Result<(), RequestError> {
        let requests = self.requests_for(key).await?;
        if let Some(uid) = uid {
            params = params.preconditions(Preconditions {
                uid: Some(uid.to_owned()),
                resource_version: None,
            });
        }
        match self
            .send("delete", key, requests.delete(&key.name, &params))
            .await
        {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }

    /// Returns the REST resource of a kind, from cached or new discovery.
    pub(super) async fn served(&self, kind: &Kind) -> Result<ServedKind, RequestError> {
        if let Some(served) = self.resources.find(kind) {
            return Ok(served);
        }
        let prefix = if kind.api_version.contains('/') {
            "/apis"
        } else {
            "/api"
        };
        let path = format!("{prefix}/{}", kind.api_version);
        let request = Request::get(&path)
            .body(Vec::new())
            .map_err(kube::core::request::Error::BuildRequest);
        // Discovery uses Windlass's own permissions: it discloses nothing.
        match self.impersonating(None).send("discover", kind, request).await {
            Ok(list) => self.resources.cache(kind, &list),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
        self.resources
            .find(kind)
            .ok_or_else(|| RequestError::UnknownKind { kind: kind.clone() })
    }

    /// Drops the cached discovery of a kind, whose CustomResourceDefinition was created or deleted.
    pub(super) fn forget(&self, kind: &Kind) {
        self.resources.forget(kind);
    }

    /// Returns a request builder for an object with a valid name.
    pub(super) async fn requests_for(&self, key: &ObjectKey) -> Result<Requests, RequestError> {
        let mut segments = key.namespace.iter().chain([&key.name]);
        if !segments.all(|segment| is_path_segment(segment)) {
            return Err(RequestError::Unaddressable {
                object: key.to_string(),
            });
        }
        self.requests(&Kind::from_key(key), key.namespace.as_deref())
            .await
    }

    pub(super) async fn requests(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
    ) -> Result<Requests, RequestError> {
        let served = self.served(kind).await?;
        let namespace = namespace.filter(|_| served.namespaced);
        let path = DynamicObject::url_path(&served.resource, namespace);
        Ok(Requests::new(path))
    }

    async fn send_patch<P: serde::Serialize + std::fmt::Debug>(
        &self,
        operation: &'static str,
        key: &ObjectKey,
        subresource: Option<&str>,
        params: &PatchParams,
        patch: &Patch<P>,
    ) -> Result<Value, RequestError> {
        let requests = self.requests_for(key).await?;
        let request = match subresource {
            Some(subresource) => requests.patch_subresource(subresource, &key.name, params, patch),
            None => requests.patch(&key.name, params, patch),
        };
        self.send(operation, key, request).await
    }

    /// Sends a request by [`send_with_retry`]. The client retries 429, 503 and 504 and honours Retry-After;
    /// the timeout covers all attempts.
    pub(super) async fn send(
        &self,
        operation: &'static str,
        subject: &dyn RequestSubject,
        request: Result<Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<Value, RequestError> {
        let client = self.client_for(operation, subject)?;
        // Boxed, as above.
        let answer = Box::pin(async {
            let request = self.with_impersonation(subject, request)?;
            send_with_retry(&client, request).await
        });
        self.within_limit(operation, subject, answer).await
    }

    async fn within_limit<T>(
        &self,
        operation: &'static str,
        subject: &dyn RequestSubject,
        answer: impl Future<Output = Result<T, kube::Error>> + Unpin,
    ) -> Result<T, RequestError> {
        let object = || subject.to_string();
        let answer = tokio::time::timeout(self.timeout, answer)
            .await
            .map_err(|_| RequestError::Timeout {
                operation,
                object: object(),
                after: self.timeout,
            })?;
        answer.map_err(|error| match error {
            kube::Error::Api(status) => RequestError::Refused {
                operation,
                object: object(),
                status,
            },
            kube::Error::Service(cause) if cause.is::<NotLeading>() => RequestError::NotLeading {
                operation,
                object: object(),
                source: NotLeading,
            },
            source => RequestError::Transport {
                operation,
                object: object(),
                source: Box::new(source),
            },
        })
    }
}

/// Reports whether a name is a single path segment (`path.IsValidPathSegmentName` of apimachinery, and
/// characters that end a path). kube does not escape names.
fn is_path_segment(name: &str) -> bool {
    name != "." && name != ".." && !name.contains(['/', '%', '?', '#'])
}

fn post_params(manager: &str) -> PostParams {
    PostParams {
        field_manager: Some(manager.to_owned()),
        ..PostParams::default()
    }
}

#[cfg(test)]
mod tests;
