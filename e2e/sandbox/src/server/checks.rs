//! Checks and defaults of a write before admission webhooks are called.

use serde_json::{Value, json};

use super::{
    api_server::ApiServer,
    call::{Call, ResourcePath},
    kinds::ServedResource,
    metadata,
    object_errors::{forbidden, stale},
};
use crate::{
    StatusError, Subject, builtin,
    field::{self, FieldError},
    storage::version,
};

/// Checks that a body has the apiVersion, kind, namespace and name of the path, and adds those that are
/// absent.
pub(super) fn check_identity(
    mut object: Value,
    target: &ResourcePath,
    served: &ServedResource,
) -> Result<Value, StatusError> {
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

pub(super) fn check_namespace(
    server: &ApiServer,
    target: &ResourcePath,
    served: &ServedResource,
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

pub(super) fn check_preconditions(
    served: &ServedResource,
    object: &Value,
    current: &Value,
) -> Result<(), StatusError> {
    let name = current["metadata"]["name"].as_str().unwrap_or_default();
    let sent = version(object);
    if sent.is_empty() && served.definition.is_some() && object["metadata"].get("uid").is_none() {
        let error = FieldError::new(
            "metadata.resourceVersion",
            field::Violation::Invalid(json!(0)),
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

/// Prunes and defaults an object. Unknown fields become warnings, or an error with `fieldValidation=Strict`.
pub(super) fn normalise(
    call: &Call,
    served: &ServedResource,
    object: &mut Value,
) -> Result<Vec<String>, StatusError> {
    let version = served
        .definition
        .as_ref()
        .and_then(|definition| definition.version(&served.version));
    let Some(version) = version else {
        if let Some(problem) = builtin::decoding_error(&served.kind, object) {
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
    // The real server keeps custom resources in maps, which it writes sorted by key.
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
            let error = FieldError::new(
                "fieldValidation",
                field::Violation::Unsupported(json!(other)),
                detail,
            );
            Err(field::invalid("meta.k8s.io", "CreateOptions", "", &[error]))
        }
    }
}

pub(super) fn deprecation(served: &ServedResource) -> Vec<String> {
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

pub(super) fn problems(served: &ServedResource, object: &Value, current: Option<&Value>) -> Vec<FieldError> {
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

pub(super) fn check_errors(
    served: &ServedResource,
    object: &Value,
    errors: &[FieldError],
) -> Result<(), StatusError> {
    if errors.is_empty() {
        return Ok(());
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    Err(field::invalid(&served.group, &served.kind, name, errors))
}
