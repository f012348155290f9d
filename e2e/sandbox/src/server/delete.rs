//! `delete` and `deletecollection`, and the removal of objects whose deletion has finished.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    api_server::ApiServer,
    call::{Call, Reply, ResourcePath},
    custom::{self, AdmissionConverter},
    hooks,
    kinds::ServedResource,
    metadata,
    object_errors::not_found,
    read::{key, written_reply},
    selectors::Selectors,
};
use crate::{
    StatusError, Subject, admission,
    storage::{StorageKey, version},
};

/// The grace period of pods that do not name one, in seconds.
const POD_GRACE: i64 = 30;

/// Handles `DELETE` of one object.
pub(super) async fn delete_object(
    server: &ApiServer,
    call: &Call,
    target: &ResourcePath,
    served: &ServedResource,
) -> Result<Reply, StatusError> {
    let options = options(call)?;
    let key = key(target, served);
    loop {
        let stored = server
            .0
            .store
            .read(&key)
            .ok_or_else(|| not_found(served, &target.name))?;
        check_preconditions(served, &options, &stored)?;
        let current = server.served_object(served, &stored).await?;
        let warnings = admit(server, call, target, served, &current).await?;
        if call.is_dry_run()? {
            return Ok(written_reply(call, served, 200, current, warnings));
        }
        let grace = call
            .query("gracePeriodSeconds")
            .parse()
            .ok()
            .or(options["gracePeriodSeconds"].as_i64());
        let policy = match call.query("propagationPolicy") {
            "" => options["propagationPolicy"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            policy => policy.to_owned(),
        };
        match start_deletion(server, &key, &stored, grace, &policy) {
            Ok(Outcome::Waiting(object)) => {
                let object = server.served_object(served, &object).await?;
                return Ok(written_reply(call, served, 200, object, warnings));
            }
            Ok(Outcome::Gone(last)) if served.definition.is_some() || !returns_object(served) => {
                return Ok(Reply::Json {
                    code: 200,
                    body: success(served, &last),
                    warnings,
                });
            }
            Ok(Outcome::Gone(last)) => {
                return Ok(written_reply(call, served, 200, last.as_ref().clone(), warnings));
            }
            Err(Stale) => {}
        }
    }
}

/// Handles `DELETE` of a collection.
pub(super) async fn delete_collection(
    server: &ApiServer,
    call: &Call,
    target: &ResourcePath,
    served: &ServedResource,
) -> Result<Reply, StatusError> {
    let selectors = Selectors::parse(call, served, "")?;
    let (stored, revision) = server.0.store.list(served.collection(&target.namespace));
    let mut items = Vec::new();
    for (key, object) in stored {
        let object = server.served_object(served, &object).await?;
        if !selectors.select(&object) {
            continue;
        }
        let target = ResourcePath {
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            ..target.clone()
        };
        match delete_object(server, call, &target, served).await {
            Ok(_) => items.push(object),
            Err(error) if error.code == 404 => {}
            Err(error) => return Err(error),
        }
    }
    let metadata = json!({"resourceVersion": revision.to_string()});
    Ok(Reply::json(super::table::list(call, served, items, &metadata)))
}

impl ApiServer {
    /// Deletes an object on behalf of a controller.
    pub(crate) fn delete(&self, key: &StorageKey, stored: &Arc<Value>, policy: &str) {
        if stored["metadata"]["deletionTimestamp"].is_null() {
            // After a conflict, the caller retries.
            let _ = start_deletion(self, key, stored, None, policy);
        }
    }

    /// Removes an object that is being deleted if it has no finalizers and no grace period left.
    pub(crate) fn release(&self, key: &StorageKey) {
        finish(self, key);
    }
}

/// Removes an object that is being deleted if it has no finalizers and no grace period left.
pub(super) fn finish(server: &ApiServer, key: &StorageKey) {
    let Some(stored) = server.0.store.read(key) else {
        return;
    };
    if !stored["metadata"]["deletionTimestamp"].is_string() {
        return;
    }
    if stored["metadata"]["finalizers"] == json!([custom::CLEANUP]) {
        return server.finalize_crd(&key.name);
    }
    let held = is_held(&stored)
        || stored["metadata"]["deletionGracePeriodSeconds"]
            .as_i64()
            .unwrap_or(0)
            > 0;
    if !held && server.0.store.remove(key, version(&stored)).is_ok() {
        finalize_empty_crd(server, key);
    }
}

enum Outcome {
    /// Its deletion waits for finalizers, a grace period or a namespace's content.
    Waiting(Arc<Value>),
    /// It was removed; this is its last state.
    Gone(Arc<Value>),
}

/// The object has changed since it was read.
struct Stale;

fn start_deletion(
    server: &ApiServer,
    key: &StorageKey,
    stored: &Arc<Value>,
    grace: Option<i64>,
    policy: &str,
) -> Result<Outcome, Stale> {
    let store = &server.0.store;
    let mut object = stored.as_ref().clone();
    let grace = grace_period(key, &object, grace);
    add_policy_finalizer(policy, &mut object);
    let namespaced_content = key.resource == "namespaces" && key.group.is_empty();
    if !is_held(&object) && grace == 0 && !namespaced_content {
        let last = store.remove(key, version(stored)).map_err(|_| Stale)?;
        finalize_empty_crd(server, key);
        return Ok(Outcome::Gone(last));
    }
    if object["metadata"]["deletionTimestamp"].is_null() {
        object["metadata"]["deletionTimestamp"] = json!(metadata::now());
        if let Some(generation) = object["metadata"]["generation"].as_i64() {
            object["metadata"]["generation"] = json!(generation + 1);
        }
    } else if grace
        >= object["metadata"]["deletionGracePeriodSeconds"]
            .as_i64()
            .unwrap_or(0)
        && object == **stored
    {
        return Ok(Outcome::Waiting(stored.clone()));
    }
    object["metadata"]["deletionGracePeriodSeconds"] = json!(grace);
    if namespaced_content {
        object["status"]["phase"] = json!("Terminating");
    }
    let object = store
        .replace(key.clone(), object, version(stored))
        .map_err(|_| Stale)?;
    if key.resource == "customresourcedefinitions" {
        super::custom::set_terminating(server, &key.name);
    }
    finish(server, key);
    Ok(Outcome::Waiting(object))
}

/// Returns the grace period in seconds; 0 except for a pod on a node.
fn grace_period(key: &StorageKey, object: &Value, asked: Option<i64>) -> i64 {
    let default = match key.resource.as_str() {
        "pods" if object["spec"]["nodeName"].is_string() => object["spec"]["terminationGracePeriodSeconds"]
            .as_i64()
            .unwrap_or(POD_GRACE),
        _ => 0,
    };
    if default == 0 {
        0
    } else {
        asked.unwrap_or(default).max(0)
    }
}

/// Adds the finalizer that tells the garbage collector the propagation policy.
fn add_policy_finalizer(policy: &str, object: &mut Value) {
    for (wanted, finalizer) in [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")] {
        let finalizers = object["metadata"]["finalizers"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        if policy == wanted && !finalizers.contains(&json!(finalizer)) {
            object["metadata"]["finalizers"] = finalizers.into_iter().chain([json!(finalizer)]).collect();
        }
    }
}

/// Reports whether the object has finalizers, including those in a namespace's `spec`.
fn is_held(object: &Value) -> bool {
    let any = |finalizers: &Value| {
        finalizers
            .as_array()
            .is_some_and(|finalizers| !finalizers.is_empty())
    };
    any(&object["metadata"]["finalizers"])
        || (object["kind"] == "Namespace" && any(&object["spec"]["finalizers"]))
}

/// Finalizes a CRD that is being deleted after one of its objects was removed.
fn finalize_empty_crd(server: &ApiServer, key: &StorageKey) {
    let name = format!("{}.{}", key.resource, key.group);
    let deleting = server
        .0
        .store
        .read(&custom::crd_key(&name))
        .is_some_and(|crd| crd["metadata"]["deletionTimestamp"].is_string());
    if deleting {
        server.finalize_crd(&name);
    }
}

fn options(call: &Call) -> Result<Value, StatusError> {
    if call.body.iter().all(u8::is_ascii_whitespace) {
        return Ok(json!({}));
    }
    serde_json::from_slice(&call.body)
        .map_err(|error| StatusError::bad_request(format!("error decoding body: {error}")))
}

fn check_preconditions(served: &ServedResource, options: &Value, stored: &Value) -> Result<(), StatusError> {
    let name = stored["metadata"]["name"].as_str().unwrap_or_default();
    let wanted = |field: &str| options["preconditions"][field].as_str();
    let conflict = |what: &str, wanted: &str, actual: &str| {
        let message = format!(
            "Operation cannot be fulfilled on {} {name:?}: the {what} in the precondition ({wanted}) does not match the \
             {what} in record ({actual}). The object might have been {}",
            served.qualified_kind(),
            if what == "UID" {
                "deleted and then recreated"
            } else {
                "modified"
            }
        );
        Err(StatusError::new(409, "Conflict", message))
    };
    let uid = stored["metadata"]["uid"].as_str().unwrap_or_default();
    match (wanted("uid"), wanted("resourceVersion")) {
        (Some(wanted), _) if wanted != uid => conflict("UID", wanted, uid),
        (_, Some(wanted)) if wanted != version(stored) => {
            conflict("ResourceVersion", wanted, version(stored))
        }
        _ => Ok(()),
    }
}

/// Calls admission webhooks for the deletion, and returns their warnings.
async fn admit(
    server: &ApiServer,
    call: &Call,
    target: &ResourcePath,
    served: &ServedResource,
    current: &Value,
) -> Result<Vec<String>, StatusError> {
    let mutating = hooks::configurations(server, "mutatingwebhookconfigurations");
    let validating = hooks::configurations(server, "validatingwebhookconfigurations");
    if mutating.is_empty() && validating.is_empty() {
        return Ok(Vec::new());
    }
    let request = hooks::admission_request(
        server,
        call,
        target,
        served,
        "DELETE",
        Value::Null,
        current.clone(),
    )?;
    let converter = AdmissionConverter { server, served };
    let admitted = admission::mutate(&server.0.webhooks, &mutating, &request, &converter, |_| {}).await?;
    let mut warnings = admitted.warnings;
    warnings.extend(admission::validate(&server.0.webhooks, &validating, &request, &converter).await?);
    Ok(warnings)
}

/// Reports whether deletion of the kind returns the object instead of a Status.
fn returns_object(served: &ServedResource) -> bool {
    matches!(
        served.kind.as_str(),
        "Pod" | "Namespace" | "Service" | "ServiceAccount"
    )
}

fn success(served: &ServedResource, last: &Value) -> Value {
    let subject = Subject {
        name: last["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
        group: served.group.clone(),
        kind: served.resource.clone(),
        uid: last["metadata"]["uid"].as_str().unwrap_or_default().to_owned(),
    };
    let mut details = json!({"name": subject.name, "kind": subject.kind, "uid": subject.uid});
    if !subject.group.is_empty() {
        details["group"] = json!(subject.group);
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}
