//! `create`, `update` and `patch`, including server-side apply.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    api_server::ApiServer,
    call::{Call, Reply, ResourcePath},
    change::Mutation,
    checks::{
        check_errors, check_identity, check_namespace, check_preconditions, deprecation, normalise, problems,
    },
    custom, delete,
    escalation::authorize_roles,
    hooks::ReviewedRequest,
    kinds::ServedResource,
    metadata,
    object_errors::{exists, forbidden, no_such_uid, not_found, stale},
    read::{key, written_reply},
    service_accounts, services,
};
use crate::{
    StatusError, builtin,
    ownership::{self, Write},
    storage::{StorageKey, version},
};

/// How often a patch is retried after a conflict.
const ATTEMPTS: usize = 20;

/// Stores an object that every cluster has, without admission.
pub(super) fn bootstrap(server: &ApiServer, mut object: Value) {
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    let Some(served) = server
        .0
        .kinds
        .all()
        .into_iter()
        .find(|served| served.kind == kind)
    else {
        return;
    };
    if metadata::prepare_create(&mut object, &served, "").is_ok() {
        builtin::default(&served.group, &served.kind, &mut object);
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let key = StorageKey {
            group: served.group,
            resource: served.resource,
            namespace: String::new(),
            name,
        };
        // This cannot fail, because the store is empty.
        let _ = server.0.store.create(key, object);
    }
}

/// Handles `POST` to a collection.
pub(super) async fn create(
    server: &ApiServer,
    call: &Call,
    target: &ResourcePath,
    served: &ServedResource,
) -> Result<Reply, StatusError> {
    let object = check_identity(call.object()?, target, served)?;
    let (object, warnings) = create_object(server, call, target, served, object, None).await?;
    Ok(written_reply(call, served, 201, object, warnings))
}

/// Creates an object; `apply` is the field manager if the request is an apply.
async fn create_object(
    server: &ApiServer,
    call: &Call,
    target: &ResourcePath,
    served: &ServedResource,
    mut object: Value,
    apply: Option<&str>,
) -> Result<(Value, Vec<String>), StatusError> {
    prepare_create(server, target, served, &mut object)?;
    let mut warnings = deprecation(served);
    warnings.extend(normalise(call, served, &mut object)?);
    services::allocate(server, served, &mut object);
    service_accounts::mount_token(server, served, &target.namespace, &mut object);
    let now = Timestamp::now();
    let manager = call.manager();
    let types = ApiServer::types(served);
    object = match apply {
        // For an apply, the object already has its managedFields.
        Some(_) => object,
        None => {
            let write = Write {
                manager: &manager,
                subresource: None,
                api_version: &served.api_version(),
                now,
            };
            ownership::update(None, object, &write, &types)
        }
    };
    let request = ReviewedRequest {
        call,
        target,
        served,
        operation: "CREATE",
        old: &Value::Null,
    };
    let (object, asked) = request.mutate(server, object).await?;
    warnings.extend(asked);
    let errors = problems(served, &object, None);
    check_errors(served, &object, &errors)?;
    authorize_roles(server, call, served, &object, &target.namespace)?;
    warnings.extend(request.validate(server, &object).await?);
    if call.is_dry_run()? {
        return Ok((object, warnings));
    }
    Ok((store(server, target, served, object).await?, warnings))
}

/// Checks that an object may be created, and sets its metadata and defaults before admission.
fn prepare_create(
    server: &ApiServer,
    target: &ResourcePath,
    served: &ServedResource,
    object: &mut Value,
) -> Result<(), StatusError> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    if served
        .definition
        .as_ref()
        .is_some_and(|definition| definition.terminating)
    {
        let message = "create not allowed while custom resource definition is terminating";
        return Err(forbidden(served, name, message));
    }
    check_namespace(server, target, served, name)?;
    metadata::prepare_create(object, served, &target.namespace)?;
    let reset =
        served.has_status() && !matches!(served.kind.as_str(), "CustomResourceDefinition" | "APIService");
    if let (true, Some(fields)) = (
        reset || served.kind == "CustomResourceDefinition",
        object.as_object_mut(),
    ) {
        fields.remove("status");
    }
    Ok(())
}

/// Stores a new object and returns it with its resourceVersion.
async fn store(
    server: &ApiServer,
    target: &ResourcePath,
    served: &ServedResource,
    mut object: Value,
) -> Result<Value, StatusError> {
    if served.kind == "CustomResourceDefinition" {
        object["metadata"]["finalizers"] = json!([custom::CLEANUP]);
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let stored = server
        .convert_to(served, object.clone(), &served.storage_api_version())
        .await?;
    let key = StorageKey {
        name: name.clone(),
        ..key(target, served)
    };
    let stored = server
        .0
        .store
        .create(key.clone(), stored)
        .map_err(|_| exists(server, served, &key))?;
    after_write(server, served, &name);
    object["metadata"]["resourceVersion"] = json!(version(&stored));
    Ok(object)
}

/// Handles `PUT` and `PATCH` of an object or its status.
pub(super) async fn change(
    server: &ApiServer,
    call: &Call,
    target: &ResourcePath,
    served: &ServedResource,
) -> Result<Reply, StatusError> {
    let change = Mutation::parse(call, target, served)?;
    let key = key(target, served);
    for _ in 0..ATTEMPTS {
        let Some(stored) = server.0.store.read(&key) else {
            let Mutation::Apply(applied) = &change else {
                return Err(not_found(served, &target.name));
            };
            if !target.subresource.is_empty() {
                return Err(not_found(served, &target.name));
            }
            if let Some(uid) = applied["metadata"]["uid"].as_str().filter(|uid| !uid.is_empty()) {
                return Err(no_such_uid(served, &target.name, uid));
            }
            let manager = call.query("fieldManager");
            let write = Write {
                manager,
                subresource: None,
                api_version: &served.api_version(),
                now: Timestamp::now(),
            };
            let mut object = ownership::apply(
                None,
                applied,
                &write,
                call.flag("force"),
                &ApiServer::types(served),
            )?;
            // Without a stored object, the resourceVersion has no effect: unlike a POST, an apply may have
            // one.
            if let Some(metadata) = object["metadata"].as_object_mut() {
                metadata.shift_remove("resourceVersion");
            }
            let (object, warnings) =
                create_object(server, call, target, served, object, Some(manager)).await?;
            return Ok(written_reply(call, served, 201, object, warnings));
        };
        match try_change(server, call, target, served, &change, &stored).await? {
            Some((object, warnings)) => return Ok(written_reply(call, served, 200, object, warnings)),
            // After a conflict, the request fails if the client named a resourceVersion, and is retried
            // otherwise.
            None if change.has_resource_version() => return Err(stale(served, &target.name)),
            None => {}
        }
    }
    Err(stale(served, &target.name))
}

/// Tries the change once; returns `None` when the object has changed since it was read.
async fn try_change(
    server: &ApiServer,
    call: &Call,
    target: &ResourcePath,
    served: &ServedResource,
    change: &Mutation,
    stored: &Arc<Value>,
) -> Result<Option<(Value, Vec<String>)>, StatusError> {
    let current = server.served_object(served, stored).await?;
    let subresource = (!target.subresource.is_empty()).then_some(target.subresource.as_str());
    let types = ApiServer::types(served);
    let api_version = served.api_version();
    let manager = call.manager();
    let write = Write {
        manager: &manager,
        subresource,
        api_version: &api_version,
        now: Timestamp::now(),
    };
    let object = change.apply_to(&current, served, &write, call.flag("force"), &types)?;
    let mut object = check_identity(object, target, served)?;
    check_preconditions(served, &object, &current)?;
    metadata::keep_immutable(&mut object, &current);
    object = writable_part(object, &current, served, subresource);
    let mut warnings = deprecation(served);
    warnings.extend(normalise(call, served, &mut object)?);
    if !matches!(change, Mutation::Apply(_)) {
        object = ownership::update(Some(&current), object, &write, &types);
    }
    // An object that is stored in an older version is written even if nothing else changes.
    let is_stored_as_is = served.definition.is_none() || stored["apiVersion"] == served.storage_api_version();
    if object == current && is_stored_as_is {
        return Ok(Some((current, warnings)));
    }
    let request = ReviewedRequest {
        call,
        target,
        served,
        operation: "UPDATE",
        old: &current,
    };
    let (mut object, asked) = request.mutate(server, object).await?;
    warnings.extend(asked);
    if metadata::is_numbered(served) && desired_state(&object) != desired_state(&current) {
        let generation = current["metadata"]["generation"].as_i64().unwrap_or(0) + 1;
        object["metadata"]["generation"] = json!(generation);
    }
    let errors = problems(served, &object, Some(&current));
    check_errors(served, &object, &errors)?;
    authorize_roles(server, call, served, &object, &target.namespace)?;
    warnings.extend(request.validate(server, &object).await?);
    if call.is_dry_run()? {
        return Ok(Some((object, warnings)));
    }
    let written = replace(server, target, served, object, version(stored)).await?;
    Ok(written.map(|object| (object, warnings)))
}

/// Stores a changed object and returns it with its resourceVersion; `None` when the stored object no longer
/// has `revision`.
async fn replace(
    server: &ApiServer,
    target: &ResourcePath,
    served: &ServedResource,
    mut object: Value,
    revision: &str,
) -> Result<Option<Value>, StatusError> {
    let key = key(target, served);
    let new = server
        .convert_to(served, object.clone(), &served.storage_api_version())
        .await?;
    let Ok(new) = server.0.store.replace(key.clone(), new, revision) else {
        return Ok(None);
    };
    object["metadata"]["resourceVersion"] = json!(version(&new));
    after_write(server, served, &target.name);
    delete::finish(server, &key);
    Ok(Some(object))
}

/// Returns `object` limited to the part that a request may change: its status, or everything except its
/// status.
fn writable_part(
    object: Value,
    current: &Value,
    served: &ServedResource,
    subresource: Option<&str>,
) -> Value {
    match subresource {
        Some("status") => {
            let mut kept = current.clone();
            kept["status"] = object["status"].clone();
            kept["metadata"]["managedFields"] = object["metadata"]["managedFields"].clone();
            without_nulls(kept)
        }
        _ if served.has_status() => {
            let mut kept = object;
            kept["status"] = current["status"].clone();
            without_nulls(kept)
        }
        _ => object,
    }
}

fn without_nulls(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|name, value| !(name == "status" && value.is_null()));
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|_, value| !value.is_null());
    }
    object
}

/// Returns the part of an object that determines its generation.
fn desired_state(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("metadata");
        fields.remove("status");
    }
    object
}

fn after_write(server: &ApiServer, served: &ServedResource, name: &str) {
    if served.kind == "CustomResourceDefinition" {
        server.reconcile_crd(name);
    }
}

impl Call {
    /// Returns the field manager: `fieldManager`, or else the User-Agent.
    pub(super) fn manager(&self) -> String {
        match (self.query("fieldManager"), self.user_agent.as_str()) {
            ("", "") => "unknown".to_owned(),
            ("", agent) => agent.to_owned(),
            (manager, _) => manager.to_owned(),
        }
    }
}
