//! `create`, `update` and `patch`, server-side apply among them.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    Server, authorization,
    call::{Call, Reply, Target},
    custom::{self, Converter},
    delete,
    kinds::Served,
    metadata,
    read::{key, not_found, written},
    services,
};
use crate::{
    StatusError, Subject, admission, builtin,
    field::{self, FieldError},
    ownership::{self, Write},
    patch,
    storage::{Key, version},
};

/// How often a patch is made again when somebody else was faster.
const ATTEMPTS: usize = 20;

/// Stores an object of every cluster, without asking anybody.
pub(super) fn bootstrap(server: &Server, mut object: Value) {
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
    if metadata::begin(&mut object, &served, "").is_ok() {
        builtin::default(&served.group, &served.kind, &mut object);
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let key = Key {
            group: served.group,
            resource: served.resource,
            namespace: String::new(),
            name,
        };
        // The store is new: nothing is there yet.
        let _ = server.0.store.create(key, object);
    }
}

/// `POST` to a collection.
pub(super) async fn create(
    server: &Server,
    call: &Call,
    target: &Target,
    served: &Served,
) -> Result<Reply, StatusError> {
    let object = identify(call.object()?, target, served)?;
    let (object, warnings) = create_object(server, call, target, served, object, None).await?;
    Ok(written(call, served, 201, object, warnings))
}

/// Creates an object; `applied` is the manager when it comes from an apply.
async fn create_object(
    server: &Server,
    call: &Call,
    target: &Target,
    served: &Served,
    mut object: Value,
    apply: Option<&str>,
) -> Result<(Value, Vec<String>), StatusError> {
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
    metadata::begin(&mut object, served, &target.namespace)?;
    let reset =
        served.has_status() && !matches!(served.kind.as_str(), "CustomResourceDefinition" | "APIService");
    if let (true, Some(fields)) = (
        reset || served.kind == "CustomResourceDefinition",
        object.as_object_mut(),
    ) {
        fields.remove("status");
    }
    let mut warnings = deprecation(served);
    warnings.extend(normalise(call, served, &mut object)?);
    services::allocate(server, served, &mut object);
    let now = Timestamp::now();
    let manager = call.manager();
    let types = Server::types(served);
    object = match apply {
        // The object was made by apply already, with its entry.
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
    let request = Request {
        call,
        target,
        served,
        operation: "CREATE",
        old: &Value::Null,
    };
    let (mut object, asked) = request.mutate(server, object).await?;
    warnings.extend(asked);
    let errors = problems(served, &object, None);
    refuse(served, &object, &errors)?;
    authorize_roles(server, call, served, &object, &target.namespace)?;
    warnings.extend(request.validate(server, &object).await?);
    if call.is_dry_run()? {
        return Ok((object, warnings));
    }
    if served.kind == "CustomResourceDefinition" {
        object["metadata"]["finalizers"] = json!([custom::CLEANUP]);
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let stored = server
        .convert_to(served, object.clone(), &served.storage_api_version())
        .await?;
    let key = Key {
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
    Ok((object, warnings))
}

/// `PUT` and `PATCH` of an object or its status.
pub(super) async fn change(
    server: &Server,
    call: &Call,
    target: &Target,
    served: &Served,
) -> Result<Reply, StatusError> {
    let change = Change::parse(call, target, served)?;
    let key = key(target, served);
    for _ in 0..ATTEMPTS {
        let Some(stored) = server.0.store.read(&key) else {
            let Change::Apply(applied) = &change else {
                return Err(not_found(served, &target.name));
            };
            if !target.subresource.is_empty() {
                return Err(not_found(served, &target.name));
            }
            let manager = call.query("fieldManager");
            let write = Write {
                manager,
                subresource: None,
                api_version: &served.api_version(),
                now: Timestamp::now(),
            };
            let object = ownership::apply(None, applied, &write, call.flag("force"), &Server::types(served))?;
            let (object, warnings) =
                create_object(server, call, target, served, object, Some(manager)).await?;
            return Ok(written(call, served, 201, object, warnings));
        };
        match attempt(server, call, target, served, &change, &stored).await? {
            Some((object, warnings)) => return Ok(written(call, served, 200, object, warnings)),
            // Somebody else was faster: a client that named the version it saw is told, others are served again.
            None if change.expects_version() => return Err(stale(served, &target.name)),
            None => {}
        }
    }
    Err(stale(served, &target.name))
}

/// One try; `None` when the object changed meanwhile.
async fn attempt(
    server: &Server,
    call: &Call,
    target: &Target,
    served: &Served,
    change: &Change,
    stored: &Arc<Value>,
) -> Result<Option<(Value, Vec<String>)>, StatusError> {
    let current = server.present(served, stored).await?;
    let subresource = (!target.subresource.is_empty()).then_some(target.subresource.as_str());
    let types = Server::types(served);
    let api_version = served.api_version();
    let manager = call.manager();
    let write = Write {
        manager: &manager,
        subresource,
        api_version: &api_version,
        now: Timestamp::now(),
    };
    let mut object = match change {
        Change::Put(object) => object.clone(),
        Change::Json(patch) => patch::json(&current, patch)?,
        Change::Merge(patch) => patch::merge(&current, patch),
        Change::Strategic(patch) => patch::strategic(&current, patch, &types)?,
        Change::Apply(applied) => {
            let mut applied = applied.clone();
            if subresource.is_none()
                && served.has_status()
                && let Some(fields) = applied.as_object_mut()
            {
                fields.remove("status");
            }
            ownership::apply(Some(&current), &applied, &write, call.flag("force"), &types)?
        }
    };
    object = identify(object, target, served)?;
    check_preconditions(served, &object, &current)?;
    metadata::keep(&mut object, &current);
    object = part(object, &current, served, subresource);
    let mut warnings = deprecation(served);
    warnings.extend(normalise(call, served, &mut object)?);
    if !matches!(change, Change::Apply(_)) {
        object = ownership::update(Some(&current), object, &write, &types);
    }
    if object == current {
        return Ok(Some((current, warnings)));
    }
    let request = Request {
        call,
        target,
        served,
        operation: "UPDATE",
        old: &current,
    };
    let (mut object, asked) = request.mutate(server, object).await?;
    warnings.extend(asked);
    if metadata::is_numbered(served) && counts(&object) != counts(&current) {
        let generation = current["metadata"]["generation"].as_i64().unwrap_or(0) + 1;
        object["metadata"]["generation"] = json!(generation);
    }
    let errors = problems(served, &object, Some(&current));
    refuse(served, &object, &errors)?;
    authorize_roles(server, call, served, &object, &target.namespace)?;
    warnings.extend(request.validate(server, &object).await?);
    if call.is_dry_run()? {
        return Ok(Some((object, warnings)));
    }
    let key = key(target, served);
    let new = server
        .convert_to(served, object.clone(), &served.storage_api_version())
        .await?;
    let Ok(new) = server.0.store.replace(key.clone(), new, version(stored)) else {
        return Ok(None);
    };
    object["metadata"]["resourceVersion"] = json!(version(&new));
    after_write(server, served, &target.name);
    delete::finish(server, &key);
    Ok(Some((object, warnings)))
}

/// What a write does to an object.
enum Change {
    Put(Value),
    Json(Value),
    Merge(Value),
    Strategic(Value),
    Apply(Value),
}

impl Change {
    fn parse(call: &Call, target: &Target, served: &Served) -> Result<Self, StatusError> {
        let body = call.object()?;
        if call.method == http::Method::PUT {
            return Ok(Self::Put(body));
        }
        match call.content_type.as_str() {
            "application/json-patch+json" => Ok(Self::Json(body)),
            "application/merge-patch+json" => Ok(Self::Merge(body)),
            "application/strategic-merge-patch+json" if served.definition.is_none() => {
                Ok(Self::Strategic(body))
            }
            "application/apply-patch+yaml" => {
                if call.query("fieldManager").is_empty() {
                    let error = FieldError::new(
                        "fieldManager",
                        field::Fault::Required,
                        "is required for apply patch",
                    );
                    return Err(StatusError {
                        subject: Subject::default(),
                        ..field::invalid("meta.k8s.io", "PatchOptions", "", &[error])
                    });
                }
                identify(body, target, served).map(Self::Apply)
            }
            _ => {
                let strategic = if served.definition.is_none() {
                    "application/strategic-merge-patch+json, "
                } else {
                    ""
                };
                Err(StatusError::new(
                    415,
                    "UnsupportedMediaType",
                    format!(
                        "the body of the request was in an unknown format - accepted media types include: \
                         application/json-patch+json, application/merge-patch+json, {strategic}application/apply-patch+yaml"
                    ),
                ))
            }
        }
    }

    /// Whether the client named the version that it saw.
    fn expects_version(&self) -> bool {
        let (Self::Put(body) | Self::Merge(body) | Self::Strategic(body) | Self::Apply(body)) = self else {
            return false;
        };
        !version(body).is_empty()
    }
}

/// A request as admission sees it.
struct Request<'a> {
    call: &'a Call,
    target: &'a Target,
    served: &'a Served,
    operation: &'static str,
    old: &'a Value,
}

impl Request<'_> {
    fn admission(&self, server: &Server, object: Value) -> Result<admission::Request, StatusError> {
        admission_request(
            server,
            self.call,
            self.target,
            self.served,
            self.operation,
            object,
            self.old.clone(),
        )
    }

    async fn mutate(&self, server: &Server, object: Value) -> Result<(Value, Vec<String>), StatusError> {
        let configurations = configurations(server, "mutatingwebhookconfigurations");
        if configurations.is_empty() {
            return Ok((object, Vec::new()));
        }
        let before = object.clone();
        let request = self.admission(server, object)?;
        let converter = Converter {
            server,
            served: self.served,
        };
        let normalise = |object: &mut Value| drop(normalise(self.call, self.served, object));
        let admitted = admission::mutate(
            &server.0.webhooks,
            &configurations,
            &request,
            &converter,
            normalise,
        )
        .await?;
        let mut object = admitted.object;
        if object != before {
            metadata::keep(&mut object, &before);
        }
        Ok((object, admitted.warnings))
    }

    async fn validate(&self, server: &Server, object: &Value) -> Result<Vec<String>, StatusError> {
        let configurations = configurations(server, "validatingwebhookconfigurations");
        if configurations.is_empty() {
            return Ok(Vec::new());
        }
        let request = self.admission(server, object.clone())?;
        let converter = Converter {
            server,
            served: self.served,
        };
        admission::validate(&server.0.webhooks, &configurations, &request, &converter).await
    }
}

/// What admission webhooks are told about a request.
pub(super) fn admission_request(
    server: &Server,
    call: &Call,
    target: &Target,
    served: &Served,
    operation: &'static str,
    object: Value,
    old_object: Value,
) -> Result<admission::Request, StatusError> {
    let seen = if object.is_null() { &old_object } else { &object };
    let name = match target.name.as_str() {
        "" => seen["metadata"]["name"].as_str().unwrap_or_default(),
        name => name,
    };
    let namespace_labels = if served.kind == "Namespace" {
        seen["metadata"]["labels"].clone()
    } else {
        let namespace = server.0.stored("", "namespaces", "", &target.namespace);
        namespace
            .map(|namespace| namespace["metadata"]["labels"].clone())
            .unwrap_or_default()
    };
    let equivalents = served.definition.as_ref().map(|definition| {
        let others = definition
            .versions_by_priority()
            .into_iter()
            .filter(|version| *version != served.version);
        others
            .map(|version| admission::Version {
                group: served.group.clone(),
                version,
            })
            .collect()
    });
    let kind = match operation {
        "CREATE" => "CreateOptions",
        "DELETE" => "DeleteOptions",
        _ if call.method == http::Method::PATCH => "PatchOptions",
        _ => "UpdateOptions",
    };
    Ok(admission::Request {
        resource: admission::Resource {
            group: served.group.clone(),
            version: served.version.clone(),
            resource: served.resource.clone(),
            subresource: target.subresource.clone(),
        },
        kind: served.kind.clone(),
        name: name.to_owned(),
        namespace: target.namespace.clone(),
        namespace_labels,
        operation,
        user: call.user.info(),
        object,
        old_object,
        dry_run: call.is_dry_run()?,
        options: json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"}),
        equivalents: equivalents.unwrap_or_default(),
    })
}

pub(super) fn configurations(server: &Server, resource: &str) -> Vec<Value> {
    let all = server.0.all("admissionregistration.k8s.io", resource, None);
    all.iter()
        .map(|configuration| configuration.as_ref().clone())
        .collect()
}

/// Checks that a body is of the resource and place that the path names, and fills both in where it is silent.
fn identify(mut object: Value, target: &Target, served: &Served) -> Result<Value, StatusError> {
    if !object.is_object() {
        return Err(StatusError::bad_request("the body is not an object"));
    }
    let expected = served.api_version();
    match object["apiVersion"]
        .as_str()
        .filter(|version| !version.is_empty())
    {
        Some(actual) if actual != expected => {
            return Err(StatusError::bad_request(format!(
                "the API version in the data ({actual}) does not match the expected API version ({expected})"
            )));
        }
        _ => object["apiVersion"] = json!(expected),
    }
    match object["kind"].as_str().filter(|kind| !kind.is_empty()) {
        Some(actual) if actual != served.kind => {
            return Err(StatusError::bad_request(format!(
                "the kind in the data ({actual}) does not match the expected kind ({})",
                served.kind
            )));
        }
        _ => object["kind"] = json!(served.kind),
    }
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    if !namespace.is_empty() && namespace != target.namespace {
        return Err(StatusError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    if !target.name.is_empty() && !name.is_empty() && name != target.name {
        return Err(StatusError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            target.name
        )));
    }
    if !target.name.is_empty() {
        object["metadata"]["name"] = json!(target.name);
    }
    Ok(object)
}

fn check_namespace(
    server: &Server,
    target: &Target,
    served: &Served,
    object: &str,
) -> Result<(), StatusError> {
    if !served.namespaced {
        return Ok(());
    }
    let name = &target.namespace;
    let Some(namespace) = server.0.stored("", "namespaces", "", name) else {
        return Err(StatusError {
            subject: Subject {
                name: name.clone(),
                kind: "namespaces".to_owned(),
                ..Subject::default()
            },
            ..StatusError::new(404, "NotFound", format!("namespaces {name:?} not found"))
        });
    };
    if namespace["metadata"]["deletionTimestamp"].is_string() {
        let message =
            format!("unable to create new content in namespace {name} because it is being terminated");
        let mut error = forbidden(served, object, &message);
        error.causes.push(crate::Cause {
            reason: "NamespaceTerminating".to_owned(),
            message: format!("namespace {name} is being terminated"),
            field: "metadata.namespace".to_owned(),
        });
        return Err(error);
    }
    Ok(())
}

fn check_preconditions(served: &Served, object: &Value, current: &Value) -> Result<(), StatusError> {
    let name = current["metadata"]["name"].as_str().unwrap_or_default();
    let sent = version(object);
    if sent.is_empty() && served.definition.is_some() && object["metadata"].get("uid").is_none() {
        let error = FieldError::new(
            "metadata.resourceVersion",
            field::Fault::Invalid(json!(0)),
            "must be specified for an update",
        );
        let mut error = field::invalid(&served.group, &served.kind, name, &[error]);
        error.message = error
            .message
            .replacen(&served.qualified_kind(), &served.qualified(), 1);
        return Err(error);
    }
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
    if !uid.is_empty() && object["metadata"]["uid"] != current["metadata"]["uid"] {
        let message = format!(
            "Operation cannot be fulfilled on {} {name:?}: StorageError: invalid object, Code: 4, Key: \
             /registry/{}/{}/{}/{name}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in \
             precondition: {uid}, UID in object meta: {}",
            served.qualified(),
            served.group,
            served.resource,
            current["metadata"]["namespace"].as_str().unwrap_or_default(),
            current["metadata"]["uid"].as_str().unwrap_or_default(),
        );
        return Err(StatusError::new(409, "Conflict", message));
    }
    if !sent.is_empty() && sent != version(current) {
        return Err(stale(served, name));
    }
    Ok(())
}

/// The part of an object that a request may change: its status, or all but that.
fn part(object: Value, current: &Value, served: &Served, subresource: Option<&str>) -> Value {
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

/// Prunes and defaults; what was unknown becomes warnings, or an error where the client asked for that.
fn normalise(call: &Call, served: &Served, object: &mut Value) -> Result<Vec<String>, StatusError> {
    let version = served
        .definition
        .as_ref()
        .and_then(|definition| definition.version(&served.version));
    let Some(version) = version else {
        if let Some(problem) = builtin::undecodable(&served.kind, object) {
            return Err(StatusError::bad_request(format!(
                "{} in version {:?} cannot be handled as a {}: {problem}",
                served.kind, served.version, served.kind
            )));
        }
        builtin::default(&served.group, &served.kind, object);
        return Ok(Vec::new());
    };
    let unknown = version.schema.prune(object);
    version.schema.default(object);
    // The real server keeps custom resources in maps, which are written in the order of their keys.
    object.sort_all_objects();
    match call.query("fieldValidation") {
        "Ignore" => Ok(Vec::new()),
        "Strict" if !unknown.is_empty() => {
            let fields: Vec<String> = unknown
                .iter()
                .map(|field| format!("unknown field {field:?}"))
                .collect();
            Err(StatusError::bad_request(format!(
                "{} in version {:?} cannot be handled as a {}: strict decoding error: {}",
                served.kind,
                served.version,
                served.kind,
                fields.join(", ")
            )))
        }
        "" | "Warn" | "Strict" => Ok(unknown
            .iter()
            .map(|field| format!("unknown field {field:?}"))
            .collect()),
        other => {
            let detail = "supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"";
            let error = FieldError::new("fieldValidation", field::Fault::Unsupported(json!(other)), detail);
            Err(field::invalid("meta.k8s.io", "CreateOptions", "", &[error]))
        }
    }
}

fn deprecation(served: &Served) -> Vec<String> {
    let version = served
        .definition
        .as_ref()
        .and_then(|definition| definition.version(&served.version));
    let warning = version.and_then(|version| version.deprecation.clone());
    warning
        .map(|warning| {
            let default = format!("{} {} is deprecated", served.api_version(), served.kind);
            if warning.is_empty() { default } else { warning }
        })
        .into_iter()
        .collect()
}

/// Everything but what says nothing about the desired state.
fn counts(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("metadata");
        fields.remove("status");
    }
    object
}

fn problems(served: &Served, object: &Value, current: Option<&Value>) -> Vec<FieldError> {
    let mut errors = metadata::problems(object, current, served);
    let version = served
        .definition
        .as_ref()
        .and_then(|definition| definition.version(&served.version));
    match version {
        Some(version) => errors.extend(version.schema.validate(object, current)),
        None if served.kind == "CustomResourceDefinition" => {
            errors.extend(crate::crd::validate(object, current));
        }
        None => errors.extend(builtin::validate(&served.kind, object, current)),
    }
    errors
}

fn refuse(served: &Served, object: &Value, errors: &[FieldError]) -> Result<(), StatusError> {
    if errors.is_empty() {
        return Ok(());
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    Err(field::invalid(&served.group, &served.kind, name, errors))
}

/// Nobody hands out rights that they do not have (RBAC's escalation check), unless `escalate` or `bind` allow it.
fn authorize_roles(
    server: &Server,
    call: &Call,
    served: &Served,
    object: &Value,
    namespace: &str,
) -> Result<(), StatusError> {
    if served.group != "rbac.authorization.k8s.io" {
        return Ok(());
    }
    let store = &server.0.store;
    let may = |verb: &str, resource: &str, name: &str| {
        let target = Target {
            group: served.group.clone(),
            version: served.version.clone(),
            namespace: namespace.to_owned(),
            resource: resource.to_owned(),
            name: name.to_owned(),
            subresource: String::new(),
        };
        authorization::allows(store, &call.user, verb, &target)
    };
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let (wanted, allowed) = if served.kind.ends_with("Binding") {
        let reference = &object["roleRef"];
        let resource = if reference["kind"] == "ClusterRole" {
            "clusterroles"
        } else {
            "roles"
        };
        let wanted = authorization::role_rules(store, reference, namespace);
        (
            wanted,
            may("bind", resource, reference["name"].as_str().unwrap_or_default()),
        )
    } else {
        (
            object["rules"].as_array().cloned().unwrap_or_default(),
            may("escalate", &served.resource, name),
        )
    };
    if allowed || authorization::covers(store, &call.user, namespace, &wanted) {
        return Ok(());
    }
    let message = format!(
        "user {:?} (groups={:?}) is attempting to grant RBAC permissions not currently held",
        call.user.name,
        call.user.all_groups()
    );
    Err(forbidden(served, name, &message))
}

fn forbidden(served: &Served, name: &str, why: &str) -> StatusError {
    StatusError {
        subject: Subject {
            name: name.to_owned(),
            group: served.group.clone(),
            kind: served.resource.clone(),
            ..Subject::default()
        },
        ..StatusError::new(
            403,
            "Forbidden",
            format!("{} {name:?} is forbidden: {why}", served.qualified()),
        )
    }
}

fn exists(server: &Server, served: &Served, key: &Key) -> StatusError {
    let deleting = server
        .0
        .store
        .read(key)
        .is_some_and(|object| object["metadata"]["deletionTimestamp"].is_string());
    let prefix = if deleting { "object is being deleted: " } else { "" };
    let message = format!("{prefix}{} {:?} already exists", served.qualified(), key.name);
    StatusError {
        subject: Subject {
            name: key.name.clone(),
            group: served.group.clone(),
            kind: served.resource.clone(),
            ..Subject::default()
        },
        ..StatusError::new(409, "AlreadyExists", message)
    }
}

pub(super) fn stale(served: &Served, name: &str) -> StatusError {
    let message = format!(
        "Operation cannot be fulfilled on {} {name:?}: the object has been modified; please apply your changes to the \
         latest version and try again",
        served.qualified()
    );
    StatusError {
        subject: Subject {
            name: name.to_owned(),
            group: served.group.clone(),
            kind: served.resource.clone(),
            ..Subject::default()
        },
        ..StatusError::new(409, "Conflict", message)
    }
}

fn after_write(server: &Server, served: &Served, name: &str) {
    if served.kind == "CustomResourceDefinition" {
        server.take_up(name);
    }
}

impl Call {
    /// Who writes: `fieldManager`, or the User-Agent.
    pub(super) fn manager(&self) -> String {
        match (self.query("fieldManager"), self.user_agent.as_str()) {
            ("", "") => "unknown".to_owned(),
            ("", agent) => agent.to_owned(),
            (manager, _) => manager.to_owned(),
        }
    }
}
