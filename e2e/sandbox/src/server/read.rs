//! `get` and `list`.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::{
    api_server::ApiServer,
    call::{Call, Reply, ResourcePath},
    kinds::ServedResource,
    object_errors::not_found,
    selectors::Selectors,
    table,
};
use crate::{
    StatusError, Subject,
    field::{self, FieldError, Violation},
    storage::StorageKey,
};

/// How long a list waits for a resourceVersion in the future.
const FUTURE_PATIENCE: std::time::Duration = std::time::Duration::from_secs(3);

/// Returns the storage key of a named object.
pub(super) fn key(target: &ResourcePath, served: &ServedResource) -> StorageKey {
    StorageKey {
        group: served.storage_group().to_owned(),
        resource: served.resource.clone(),
        namespace: target.namespace.clone(),
        name: target.name.clone(),
    }
}

/// Handles `GET` of one object.
pub(super) async fn get(
    server: &ApiServer,
    call: &Call,
    target: &ResourcePath,
    served: &ServedResource,
) -> Result<Reply, StatusError> {
    let stored = server
        .0
        .store
        .read(&key(target, served))
        .ok_or_else(|| not_found(served, &target.name))?;
    let object = server.served_object(served, &stored).await?;
    Ok(Reply::json(table::object(call, served, object)))
}

/// Returns the response to a write.
pub(super) fn written_reply(
    call: &Call,
    served: &ServedResource,
    code: u16,
    object: Value,
    warnings: Vec<String>,
) -> Reply {
    Reply::Json {
        code,
        body: table::object(call, served, object),
        warnings,
    }
}

/// Handles `GET` of a collection.
pub(super) async fn list(
    server: &ApiServer,
    call: &Call,
    target: &ResourcePath,
    served: &ServedResource,
) -> Result<Reply, StatusError> {
    check_options(call)?;
    server.check_initialised(served)?;
    let selectors = Selectors::parse(call, served, &target.name)?;
    wait_for(server, call.query("resourceVersion")).await?;
    let scope = served.collection(&target.namespace);
    let (stored, mut revision) = server.0.store.list(scope);
    let mut start = None;
    if let Some((at, after)) = parse_continue(call.query("continue"))? {
        if server.0.store.since(at, scope).is_err() {
            let message = "The provided continue parameter is too old to display a consistent list result. You can \
                           start a new list without the continue parameter.";
            return Err(StatusError::new(410, "Expired", message));
        }
        revision = at;
        start = Some(after);
    }
    let rest: Vec<_> = stored
        .into_iter()
        .filter(|(key, _)| {
            start
                .as_ref()
                .is_none_or(|after| (&key.namespace, &key.name) > (&after.0, &after.1))
        })
        .collect();
    let limit = call
        .query("limit")
        .parse::<usize>()
        .ok()
        .filter(|limit| *limit > 0)
        .unwrap_or(usize::MAX);
    let mut items = Vec::new();
    let mut metadata = json!({"resourceVersion": revision.to_string()});
    for (index, (_, stored)) in rest.iter().enumerate() {
        if items.len() == limit {
            let (last, _) = &rest[index - 1];
            let token = json!([revision, last.namespace, last.name]).to_string();
            metadata["continue"] = json!(URL_SAFE_NO_PAD.encode(token));
            if call.query("labelSelector").is_empty() && call.query("fieldSelector").is_empty() {
                metadata["remainingItemCount"] = json!(rest.len() - index);
            }
            break;
        }
        // Selected fields are the same in all versions, except for those of custom resources.
        let object = server.listed_object(served, stored).await?;
        if selectors.select(&object) {
            items.push(object);
        }
    }
    Ok(Reply::json(table::list(call, served, items, &metadata)))
}

/// Rejects contradictory options.
fn check_options(call: &Call) -> Result<(), StatusError> {
    let mut problems = Vec::new();
    let forbidden = |field: &str, detail: &str| FieldError::new(field, Violation::Forbidden, detail);
    let (version, rule) = (call.query("resourceVersion"), call.query("resourceVersionMatch"));
    let streams = call.query.contains_key("sendInitialEvents");
    if (!rule.is_empty() || streams) && version.is_empty() {
        let detail = "resourceVersionMatch is forbidden unless resourceVersion is provided";
        problems.push(forbidden("resourceVersionMatch", detail));
    }
    if streams {
        problems.push(forbidden(
            "sendInitialEvents",
            "sendInitialEvents is forbidden for list",
        ));
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(StatusError {
        subject: Subject::default(),
        ..field::invalid("meta.k8s.io", "ListOptions", "", &problems)
    })
}

/// Parses a resourceVersion; empty and 0 mean any.
pub(super) fn parse_revision(text: &str) -> Result<u64, StatusError> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| {
        StatusError::bad_request(format!(
            "invalid resource version: resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: \
             invalid syntax"
        ))
    })
}

/// Waits until the store has reached a resourceVersion.
async fn wait_for(server: &ApiServer, text: &str) -> Result<(), StatusError> {
    let wanted = parse_revision(text)?;
    let mut revision = server.0.store.subscribe();
    let reached =
        tokio::time::timeout(FUTURE_PATIENCE, revision.wait_for(|current| *current >= wanted)).await;
    if reached.is_ok() {
        return Ok(());
    }
    let current = server.0.store.revision();
    let message = format!("Timeout: Too large resource version: {wanted}, current: {current}");
    Err(StatusError {
        causes: vec![crate::Cause {
            reason: "ResourceVersionTooLarge".to_owned(),
            message: "Too large resource version".to_owned(),
            field: String::new(),
        }],
        retry_after: Some(1),
        ..StatusError::new(504, "Timeout", message)
    })
}

type Continue = (u64, (String, String));

fn parse_continue(token: &str) -> Result<Option<Continue>, StatusError> {
    if token.is_empty() {
        return Ok(None);
    }
    let decoded = URL_SAFE_NO_PAD.decode(token).ok();
    let parsed = decoded.and_then(|bytes| serde_json::from_slice::<(u64, String, String)>(&bytes).ok());
    let Some((revision, namespace, name)) = parsed else {
        return Err(StatusError::bad_request(format!(
            "invalid continue token: continue key is not valid: {token:?}"
        )));
    };
    Ok(Some((revision, (namespace, name))))
}
