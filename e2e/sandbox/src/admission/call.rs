//! Calls a single admission webhook.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::{
    conditions::{self, MatchResult},
    convert::Convert,
    hook::WebhookMatch,
    request::ReviewRequest,
};
use crate::{StatusError, conversion::request_uid, webhook::WebhookClient};

/// The default of `timeoutSeconds`.
const DEFAULT_TIMEOUT: u64 = 10;

#[derive(Default)]
pub(super) struct AllowedReview {
    /// A JSON patch.
    pub(super) patch: Option<Value>,
    /// Warnings for the client.
    pub(super) warnings: Vec<String>,
}

/// Why a call did not return a valid review.
enum Failure {
    /// The webhook cannot be reached or returns an invalid response: its failurePolicy decides.
    Webhook(String),
    /// The request fails regardless of the failurePolicy.
    Request(StatusError),
}

/// Calls one webhook with `object`.
pub(super) async fn call_webhook(
    client: &WebhookClient,
    hook: &WebhookMatch<'_>,
    request: &ReviewRequest,
    object: &Value,
    convert: &impl Convert,
) -> Result<AllowedReview, StatusError> {
    let name = hook.webhook["name"].as_str().unwrap_or_default();
    let ignores_failures = hook.webhook["failurePolicy"] == "Ignore";
    match conditions::evaluate(hook.webhook, request, object) {
        MatchResult::Call => {}
        MatchResult::Skip => return Ok(AllowedReview::default()),
        MatchResult::Failed(_) if ignores_failures => return Ok(AllowedReview::default()),
        MatchResult::Failed(problem) => {
            let message = format!("webhook {name:?} matchConditions cannot be evaluated: {problem}");
            return Err(StatusError::new(403, "Forbidden", message));
        }
    }
    if request.dry_run
        && !matches!(
            hook.webhook["sideEffects"].as_str(),
            Some("None" | "NoneOnDryRun")
        )
    {
        let message = format!("admission webhook {name:?} does not support dry run");
        return Err(StatusError::bad_request(message));
    }
    match send_review(client, hook, name, request, object, convert).await {
        Ok(outcome) => Ok(outcome),
        Err(Failure::Request(error)) => Err(error),
        Err(Failure::Webhook(_)) if ignores_failures => Ok(AllowedReview::default()),
        Err(Failure::Webhook(problem)) => Err(StatusError::internal(format!(
            "failed calling webhook {name:?}: {problem}"
        ))),
    }
}

async fn send_review(
    client: &WebhookClient,
    hook: &WebhookMatch<'_>,
    name: &str,
    request: &ReviewRequest,
    object: &Value,
    convert: &impl Convert,
) -> Result<AllowedReview, Failure> {
    let review_version = hook.webhook["admissionReviewVersions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .find(|version| ["v1", "v1beta1"].contains(version))
        .ok_or_else(|| {
            Failure::Webhook("webhook does not accept known AdmissionReview versions (v1)".to_owned())
        })?;
    let api_version = format!("admission.k8s.io/{review_version}");
    let uid = request_uid();
    let review = json!({
        "kind": "AdmissionReview", "apiVersion": api_version,
        "request": review_request(hook, request, object, &uid, convert).await.map_err(Failure::Request)?,
    });
    let timeout = Duration::from_secs(hook.webhook["timeoutSeconds"].as_u64().unwrap_or(DEFAULT_TIMEOUT));
    let answer = client
        .post(&hook.webhook["clientConfig"], &review, timeout)
        .await
        .map_err(|error| match error {
            crate::webhook::CallError::Client(problem) => {
                Failure::Webhook(format!("could not get REST client: {problem}"))
            }
            other => Failure::Webhook(format!("failed to call webhook: {other}")),
        })?;
    let response = &answer["response"];
    if !response.is_object() {
        return Err(Failure::Webhook("webhook response was absent".to_owned()));
    }
    if review_version == "v1" {
        let invalid = |what: &str| Failure::Webhook(format!("received invalid webhook response: {what}"));
        if response["uid"] != uid {
            let got = response["uid"].as_str().unwrap_or_default();
            return Err(invalid(&format!("expected response.uid={uid:?}, got {got:?}")));
        }
        if answer["apiVersion"] != api_version || answer["kind"] != "AdmissionReview" {
            let (version, kind) = (&answer["apiVersion"], &answer["kind"]);
            return Err(invalid(&format!(
                "expected webhook response of {api_version}, Kind=AdmissionReview, got {version}, Kind={kind}"
            )));
        }
    }
    if response["allowed"] != true {
        return Err(Failure::Request(denial(name, &response["status"])));
    }
    Ok(AllowedReview {
        patch: patch(response)?,
        warnings: warnings(response),
    })
}

fn patch(response: &Value) -> Result<Option<Value>, Failure> {
    let Some(encoded) = response["patch"].as_str().filter(|patch| !patch.is_empty()) else {
        return Ok(None);
    };
    if response["patchType"] != "JSONPatch" {
        return Err(Failure::Webhook(
            "received invalid webhook response: unsupported patchType".to_owned(),
        ));
    }
    let bytes = STANDARD
        .decode(encoded)
        .map_err(|error| Failure::Webhook(error.to_string()))?;
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|error| Failure::Webhook(error.to_string()))
}

fn warnings(response: &Value) -> Vec<String> {
    let listed = response["warnings"].as_array().into_iter().flatten();
    listed.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns the error of a denied request.
fn denial(name: &str, status: &Value) -> StatusError {
    let text = |field: &str| status[field].as_str().filter(|text| !text.is_empty());
    let prefix = format!("admission webhook {name:?} denied the request");
    let message = match (text("message"), text("reason")) {
        (Some(message), _) => format!("{prefix}: {message}"),
        (None, Some(reason)) => format!("{prefix}: {reason}"),
        (None, None) => format!("{prefix} without explanation"),
    };
    let code = status["code"]
        .as_u64()
        .and_then(|code| u16::try_from(code).ok())
        .filter(|code| *code >= 400);
    let code = code.unwrap_or(if text("reason").is_some() { 400 } else { 403 });
    let reason = text("reason").unwrap_or(if code == 403 { "Forbidden" } else { "" });
    StatusError::new(code, reason, message)
}

/// Builds the `request` of an AdmissionReview.
async fn review_request(
    hook: &WebhookMatch<'_>,
    request: &ReviewRequest,
    object: &Value,
    uid: &str,
    convert: &impl Convert,
) -> Result<Value, StatusError> {
    let seen = |value: &Value| {
        let value = value.clone();
        async move {
            if value.is_null() || value["apiVersion"] == json!(hook.version.api_version()) {
                return Ok(value);
            }
            convert.convert(&value, &hook.version.api_version()).await
        }
    };
    let object = seen(object).await?;
    let old_object = seen(&request.old_object).await?;
    let kind = |version: &str, group: &str| json!({"group": group, "version": version, "kind": request.kind});
    let resource = |version: &str, group: &str| json!({"group": group, "version": version, "resource": request.resource.resource});
    let own = (request.resource.version.as_str(), request.resource.group.as_str());
    let wanted = (hook.version.version.as_str(), hook.version.group.as_str());
    let mut review = json!({
        "uid": uid,
        "kind": kind(wanted.0, wanted.1), "resource": resource(wanted.0, wanted.1),
        "requestKind": kind(own.0, own.1), "requestResource": resource(own.0, own.1),
        "operation": request.operation, "userInfo": request.user,
        "object": object, "oldObject": old_object,
        "dryRun": request.dry_run, "options": request.options,
    });
    let optional = [
        ("name", &request.name),
        ("namespace", &request.namespace),
        ("subResource", &request.resource.subresource),
        ("requestSubResource", &request.resource.subresource),
    ];
    for (field, value) in optional.into_iter().filter(|(_, value)| !value.is_empty()) {
        review[field] = json!(value);
    }
    Ok(review)
}

/// Applies a webhook's patch to the object in the version that it received, and converts the result back.
pub(super) async fn apply_patch(
    hook: &WebhookMatch<'_>,
    request: &ReviewRequest,
    object: &Value,
    patch: &Value,
    convert: &impl Convert,
) -> Result<Value, StatusError> {
    let own = object["apiVersion"].as_str().unwrap_or_default().to_owned();
    let wanted = hook.version.api_version();
    let mut seen = if own == wanted {
        object.clone()
    } else {
        convert.convert(object, &wanted).await?
    };
    let failed = |problem: String| StatusError::internal(problem);
    let operations: json_patch::Patch =
        serde_json::from_value(patch.clone()).map_err(|error| failed(error.to_string()))?;
    json_patch::patch(&mut seen, &operations).map_err(|error| failed(error.to_string()))?;
    if own == wanted {
        return Ok(seen);
    }
    debug_assert_eq!(
        request.resource.version,
        own.rsplit('/').next().unwrap_or_default()
    );
    convert.convert(&seen, &own).await
}
