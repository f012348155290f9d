//! Subresources other than `status`: `binding`, `eviction`, `token`, `scale`, `finalize`.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{
    api_server::ApiServer,
    call::{Call, Reply, ResourcePath},
    delete,
    kinds::ServedResource,
    object_errors::{not_found, stale},
    read::key,
    write,
};
use crate::{StatusError, storage::version};

/// The default lifetime of a token in seconds.
const TOKEN_SECONDS: u64 = 3600;

/// Handles a request for one of these subresources; returns `None` for other paths.
pub(super) async fn reply(
    server: &ApiServer,
    call: &Call,
    target: &ResourcePath,
    served: &ServedResource,
) -> Result<Option<Reply>, StatusError> {
    let reply = match target.subresource.as_str() {
        "" | "status" => return Ok(None),
        "binding" => bind(server, call, target, served)?,
        "eviction" => evict(server, call, target, served).await?,
        "token" => token(server, call, target, served)?,
        "finalize" => finalize(server, call, target, served)?,
        "scale" => scale(server, call, target, served).await?,
        _ => {
            return Err(StatusError::new(
                404,
                "NotFound",
                "the server could not find the requested resource",
            ));
        }
    };
    Ok(Some(reply))
}

fn method(call: &Call, allowed: &[http::Method]) -> Result<(), StatusError> {
    if allowed.contains(&call.method) {
        return Ok(());
    }
    let message = "the server does not allow this method on the requested resource";
    Err(StatusError::new(405, "MethodNotAllowed", message))
}

fn created_reply() -> Reply {
    let body =
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    Reply::Json {
        code: 201,
        body,
        warnings: Vec::new(),
    }
}

/// `POST pods/NAME/binding`: assigns a pod to a node.
fn bind(
    server: &ApiServer,
    call: &Call,
    target: &ResourcePath,
    served: &ServedResource,
) -> Result<Reply, StatusError> {
    method(call, &[http::Method::POST])?;
    let binding = call.object()?;
    let node = binding["target"]["name"].as_str().unwrap_or_default();
    let store = &server.shared().store;
    let key = key(target, served);
    loop {
        let stored = store.read(&key).ok_or_else(|| not_found(served, &target.name))?;
        let assigned = stored["spec"]["nodeName"].as_str().unwrap_or_default();
        if !assigned.is_empty() {
            let message = format!(
                "Operation cannot be fulfilled on pods/binding {:?}: pod {} is already assigned to node {assigned:?}",
                target.name, target.name
            );
            return Err(StatusError::new(409, "Conflict", message));
        }
        let mut pod = stored.as_ref().clone();
        pod["spec"]["nodeName"] = json!(node);
        super::custom::set_condition(&mut pod, "PodScheduled", "True", "", "");
        if store.replace(key.clone(), pod, version(&stored)).is_ok() {
            return Ok(created_reply());
        }
    }
}

/// `POST pods/NAME/eviction`: deletes the pod. Fails if the namespace has a PodDisruptionBudget.
async fn evict(
    server: &ApiServer,
    call: &Call,
    target: &ResourcePath,
    served: &ServedResource,
) -> Result<Reply, StatusError> {
    method(call, &[http::Method::POST])?;
    if !server
        .shared()
        .all("policy", "poddisruptionbudgets", Some(&target.namespace))
        .is_empty()
    {
        let message = "the sandbox does not compute disruption budgets: delete the pod instead";
        return Err(StatusError::new(501, "NotImplemented", message));
    }
    let eviction = call.object()?;
    let options = eviction
        .get("deleteOptions")
        .cloned()
        .unwrap_or_else(|| json!({}));
    let call = Call {
        body: options.to_string().into_bytes(),
        ..call.clone()
    };
    let pod = ResourcePath {
        subresource: String::new(),
        ..target.clone()
    };
    delete::delete_object(server, &call, &pod, served).await?;
    Ok(created_reply())
}

/// `POST serviceaccounts/NAME/token`.
fn token(
    server: &ApiServer,
    call: &Call,
    target: &ResourcePath,
    served: &ServedResource,
) -> Result<Reply, StatusError> {
    method(call, &[http::Method::POST])?;
    server
        .shared()
        .store
        .read(&key(target, served))
        .ok_or_else(|| not_found(served, &target.name))?;
    let mut request = call.object()?;
    let seconds = request["spec"]["expirationSeconds"]
        .as_u64()
        .unwrap_or(TOKEN_SECONDS);
    let lifetime = Duration::from_secs(seconds);
    let expires = Timestamp::now() + SignedDuration::try_from(lifetime).unwrap_or(SignedDuration::MAX);
    request["apiVersion"] = json!("authentication.k8s.io/v1");
    request["kind"] = json!("TokenRequest");
    request["spec"]["expirationSeconds"] = json!(seconds);
    request["status"] = json!({
        "token": server.token(&target.namespace, &target.name, lifetime),
        "expirationTimestamp": expires.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    });
    Ok(Reply::Json {
        code: 201,
        body: request,
        warnings: Vec::new(),
    })
}

/// `PUT namespaces/NAME/finalize`: replaces `spec.finalizers` only.
fn finalize(
    server: &ApiServer,
    call: &Call,
    target: &ResourcePath,
    served: &ServedResource,
) -> Result<Reply, StatusError> {
    method(call, &[http::Method::PUT])?;
    let wanted = call.object()?;
    let key = key(target, served);
    let store = &server.shared().store;
    let stored = store.read(&key).ok_or_else(|| not_found(served, &target.name))?;
    let sent = version(&wanted);
    if !sent.is_empty() && sent != version(&stored) {
        return Err(stale(served, &target.name));
    }
    let mut namespace = stored.as_ref().clone();
    namespace["spec"]["finalizers"] = wanted["spec"]["finalizers"]
        .as_array()
        .cloned()
        .unwrap_or_default()
        .into();
    let namespace = store
        .replace(key.clone(), namespace, version(&stored))
        .map_err(|_| stale(served, &target.name))?;
    delete::finish(server, &key);
    Ok(Reply::json(namespace.as_ref().clone()))
}

/// `scale`: reads and writes an object's number of replicas.
async fn scale(
    server: &ApiServer,
    call: &Call,
    target: &ResourcePath,
    served: &ServedResource,
) -> Result<Reply, StatusError> {
    method(call, &[http::Method::GET, http::Method::PUT, http::Method::PATCH])?;
    let paths = Paths::new(served);
    let stored = server
        .shared()
        .store
        .read(&key(target, served))
        .ok_or_else(|| not_found(served, &target.name))?;
    let current = server.served_object(served, &stored).await?;
    if call.method == http::Method::GET {
        return Ok(Reply::json(paths.view(&current)));
    }
    let replicas = requested_replicas(call, target, served, &paths.view(&current))?;
    let mut patch = json!({});
    json_path::set(&mut patch, &paths.spec, json!(replicas));
    let call = Call {
        method: http::Method::PATCH,
        content_type: "application/merge-patch+json".to_owned(),
        body: patch.to_string().into_bytes(),
        ..call.clone()
    };
    let object = ResourcePath {
        subresource: String::new(),
        ..target.clone()
    };
    let Reply::Json { body, .. } = write::change(server, &call, &object, served).await? else {
        return Err(StatusError::new(
            500,
            "InternalError",
            "the response to a write is not an object",
        ));
    };
    Ok(Reply::json(paths.view(&body)))
}

/// Returns the replicas that a write of `view` sets.
fn requested_replicas(
    call: &Call,
    target: &ResourcePath,
    served: &ServedResource,
    view: &Value,
) -> Result<i64, StatusError> {
    let body = call.object()?;
    let wanted = match call.content_type.as_str() {
        _ if call.method == http::Method::PUT => body,
        "application/json-patch+json" => crate::patch::json(view, &body)?,
        _ => crate::patch::merge(view, &body),
    };
    let sent = version(&wanted);
    if !sent.is_empty() && sent != version(view) {
        return Err(stale(served, &target.name));
    }
    let Some(replicas) = wanted["spec"]["replicas"]
        .as_i64()
        .or((wanted["spec"].is_object()).then_some(0))
    else {
        return Err(StatusError::bad_request("spec.replicas must be a number"));
    };
    if replicas < 0 {
        let error = crate::field::FieldError::new(
            "spec.replicas",
            crate::field::Violation::Invalid(json!(replicas)),
            "must be greater than or equal to 0",
        );
        return Err(crate::field::invalid(
            "autoscaling",
            "Scale",
            &target.name,
            &[error],
        ));
    }
    Ok(replicas)
}

/// The paths of the fields that `scale` shows.
struct Paths {
    spec: String,
    status: String,
    selector: String,
}

impl Paths {
    fn new(served: &ServedResource) -> Self {
        let version = served
            .definition
            .as_ref()
            .and_then(|definition| definition.version(&served.version));
        let declared = |field: &str, default: &str| match version {
            Some(version) => version.scale[field].as_str().unwrap_or_default().to_owned(),
            None => default.to_owned(),
        };
        Self {
            spec: declared("specReplicasPath", ".spec.replicas"),
            status: declared("statusReplicasPath", ".status.replicas"),
            selector: declared("labelSelectorPath", ".spec.selector"),
        }
    }

    fn view(&self, object: &Value) -> Value {
        let number = |path: &str| {
            json_path::first(object, path)
                .and_then(|value| value.as_i64())
                .unwrap_or(0)
        };
        let metadata = &object["metadata"];
        let selector = json_path::first(object, &self.selector).map(|selector| match &selector {
            Value::String(text) => text.clone(),
            selector => {
                let labels = selector["matchLabels"].as_object();
                let pairs = labels.into_iter().flatten();
                let pairs: Vec<_> = pairs
                    .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
                    .collect();
                pairs.join(",")
            }
        });
        let mut view = json!({
            "kind": "Scale", "apiVersion": "autoscaling/v1",
            "metadata": {
                "name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"],
                "resourceVersion": metadata["resourceVersion"], "creationTimestamp": metadata["creationTimestamp"],
            },
            "spec": {"replicas": number(&self.spec)},
            "status": {"replicas": number(&self.status)},
        });
        if let Some(selector) = selector {
            view["status"]["selector"] = json!(selector);
        }
        view
    }
}
