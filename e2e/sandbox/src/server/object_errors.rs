//! Errors that name an object: 403, 404 and 409.

use super::{api_server::ApiServer, kinds::ServedResource};
use crate::{StatusError, Subject, storage::StorageKey};

fn object_error(
    served: &ServedResource,
    name: &str,
    code: u16,
    reason: &str,
    message: String,
) -> StatusError {
    StatusError {
        subject: Subject {
            name: name.to_owned(),
            group: served.group.clone(),
            kind: served.resource.clone(),
            ..Subject::default()
        },
        ..StatusError::new(code, reason, message)
    }
}

/// 403: the write is not allowed.
pub(super) fn forbidden(served: &ServedResource, name: &str, why: &str) -> StatusError {
    let message = format!("{} {name:?} is forbidden: {why}", served.qualified());
    object_error(served, name, 403, "Forbidden", message)
}

/// 404: the object does not exist.
pub(super) fn not_found(served: &ServedResource, name: &str) -> StatusError {
    object_error(
        served,
        name,
        404,
        "NotFound",
        format!("{} {name:?} not found", served.qualified()),
    )
}

/// 409: the object exists already.
pub(super) fn exists(server: &ApiServer, served: &ServedResource, key: &StorageKey) -> StatusError {
    let stored = server.0.store.read(key);
    let deleting = stored.is_some_and(|object| object["metadata"]["deletionTimestamp"].is_string());
    let prefix = if deleting { "object is being deleted: " } else { "" };
    let message = format!("{prefix}{} {:?} already exists", served.qualified(), key.name);
    object_error(served, &key.name, 409, "AlreadyExists", message)
}

/// 409: the object has changed since the client read it.
pub(super) fn stale(served: &ServedResource, name: &str) -> StatusError {
    let message = format!(
        "Operation cannot be fulfilled on {} {name:?}: the object has been modified; please apply your changes to the \
         latest version and try again",
        served.qualified()
    );
    object_error(served, name, 409, "Conflict", message)
}

/// 409: an apply names a uid, and the object does not exist.
pub(super) fn no_such_uid(served: &ServedResource, name: &str, uid: &str) -> StatusError {
    let message = format!(
        "Operation cannot be fulfilled on {} {name:?}: uid mismatch: the provided object specified uid {uid}, and no \
         existing object was found",
        served.qualified()
    );
    object_error(served, name, 409, "Conflict", message)
}

/// 404: the path is not served.
pub(super) fn not_found_path() -> StatusError {
    StatusError::new(
        404,
        "NotFound",
        "the server could not find the requested resource",
    )
}
