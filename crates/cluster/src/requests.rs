//! Requests to the API servers: objects as JSON, a time limit for each call.

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

/// Speaks to the API server of the own cluster and, where there is one, to that of the remote cluster: each request goes to where
/// the object is that it names.
///
/// Objects go in and come out as JSON, so that nothing is lost that Windlass does not know, and so that a decoding
/// error can never print the content of a Secret.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    remote: Option<RemoteCluster>,
    resources: Arc<Resources>,
    /// What the API server calls the user of `client`, once it has said it.
    pub(super) user: Arc<OnceCell<String>>,
    /// As whom objects of the own cluster are read and written, if as another.
    pub(super) deputy: Option<ServiceAccount>,
    timeout: Duration,
}

/// A resourceVersion that no object has: before the first is written, etcd is at revision 1.
const OF_NO_OBJECT: &str = "1";

/// An answer without what was written: of a large object that is most of the work on both sides.
const METADATA_ONLY: HeaderValue =
    HeaderValue::from_static("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json");

/// What is looked at of an answer.
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

// === impl Cluster ===

impl Cluster {
    /// Speaks through `client`, and gives up on a call after `timeout`.
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

    /// The same, which also speaks to a `remote` cluster.
    #[must_use]
    pub fn with_remote(self, remote: Option<RemoteCluster>) -> Self {
        Self { remote, ..self }
    }

    /// The client of the own cluster.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The remote cluster, if there is one.
    pub fn remote(&self) -> Option<&RemoteCluster> {
        self.remote.as_ref()
    }

    /// The client for what is `subject`.
    fn client_for(
        &self,
        operation: &'static str,
        subject: &dyn RequestSubject,
    ) -> Result<Client, RequestError> {
        let connection = match (subject.cluster(), &self.remote) {
            (InCluster::Local, _) => return Ok(self.client.clone()),
            (InCluster::Remote, Some(remote)) => remote.connection(),
            (InCluster::Remote, None) => Err("there is none".into()),
        };
        connection.map_err(|problem| RequestError::Disconnected {
            operation,
            object: subject.to_string(),
            problem,
        })
    }

    /// How long a call may take.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Reads an object; `None` when it is not there.
    ///
    /// # Errors
    ///
    /// When the API server refuses, is not reached, or does not serve the kind.
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
    /// As [`Cluster::read`]; a conflict when it is there already.
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
    /// As [`Cluster::read`]; without `force` a conflict when another manager owns one of the fields.
    pub async fn apply(&self, object: &Value, manager: &str, force: bool) -> Result<Value, RequestError> {
        let key = ObjectKey::from_object(object).ok_or(RequestError::Nameless)?;
        let mut params = PatchParams::apply(manager);
        params.force = force;
        self.send_patch("apply", &key, None, &params, &Patch::Apply(object))
            .await
    }

    /// Creates an object, in one write after which its fields are `manager`'s as after any other apply. That alone would take
    /// over what appeared at the same moment and differs in nothing. So it names a resourceVersion that no object has: the API
    /// server compares it where there is an object (409), and does not look at it where there is none.
    ///
    /// # Errors
    ///
    /// As [`Cluster::create`].
    pub async fn create_by_apply(&self, object: &Value, manager: &str) -> Result<Value, RequestError> {
        let mut new = object.clone();
        new["metadata"]["resourceVersion"] = OF_NO_OBJECT.into();
        self.apply(&new, manager, false).await
    }

    /// Asks what would become of an object if it were applied with `force`: everything is done but the write.
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

    /// Replaces an object as a whole; its `metadata.resourceVersion` guards against other writers.
    ///
    /// # Errors
    ///
    /// As [`Cluster::read`]; a conflict when it was written since.
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
    /// As [`Cluster::read`]; [`RequestError::is_invalid`] when one of its tests failed.
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

    /// Applies a JSON patch, and looks at nothing of the answer but the object's new resourceVersion: the API server is asked
    /// for little more than that.
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
        // Boxed: whoever waits for several requests has the room for each on the stack.
        let answer = Box::pin(async {
            let request = self.signed(key, request)?;
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
    /// As [`Cluster::read`]; a conflict when the object was written since.
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

    /// Deletes an object, if it still is the one with this `uid`. One that is gone already is no error.
    ///
    /// # Errors
    ///
    /// As [`Cluster::read`]; a conflict when another object has taken the name.
    pub async fn delete(&self, key: &ObjectKey, uid: Option<&str>) -> Result<(), RequestError> {
        self.delete_with(key, uid, DeleteParams::background()).await
    }

    /// Deletes an object as [`Cluster::delete`] does, and leaves what it owns.
    ///
    /// # Errors
    ///
    /// As [`Cluster::delete`].
    pub async fn orphan(&self, key: &ObjectKey, uid: Option<&str>) -> Result<(), RequestError> {
        self.delete_with(key, uid, DeleteParams::orphan()).await
    }

    /// Deletes an object as [`Cluster::delete`] does; it is there until everything is gone that it owns, the pods of a
    /// Deployment for one.
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

    /// Where a kind is served, by what discovery says.
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
        // What is served is no secret of an account.
        match self.impersonating(None).send("discover", kind, request).await {
            Ok(list) => self.resources.learn(kind, &list),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
        self.resources
            .find(kind)
            .ok_or_else(|| RequestError::UnknownKind { kind: kind.clone() })
    }

    /// Asks discovery again when the kind is needed next: its CustomResourceDefinition has come or gone.
    pub(super) fn forget(&self, kind: &Kind) {
        self.resources.forget(kind);
    }

    /// For requests whose path may name an object.
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

    /// Sends a request, as [`ask`] does. The client retries 429, 503 and 504 by itself and honours Retry-After; the time
    /// limit covers all tries.
    pub(super) async fn send(
        &self,
        operation: &'static str,
        subject: &dyn RequestSubject,
        request: Result<Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<Value, RequestError> {
        let client = self.client_for(operation, subject)?;
        // Boxed, as above.
        let answer = Box::pin(async {
            let request = self.signed(subject, request)?;
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

/// Whether a name is one segment of a path, as it is (`path.IsValidPathSegmentName` of apimachinery, and what ends a path).
/// kube does not escape names.
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
