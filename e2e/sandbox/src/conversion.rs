//! Conversion of custom resources between versions, with strategy None or Webhook.
//!
//! Like the real server, it sends a webhook one object per call, and any failure fails the request: an object
//! is never returned unconverted.

use std::time::Duration;

use rand::Rng;
use serde_json::{Value, json};

use crate::{StatusError, webhook::WebhookClient};

/// The timeout of a conversion webhook; it is not configurable.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The review versions that the API server supports.
const KNOWN_REVIEWS: [&str; 2] = ["v1", "v1beta1"];

/// Converts `objects` of `kind` to `desired_api_version` according to `spec.conversion` of their CRD.
///
/// Objects that have that version already are returned unchanged.
///
/// # Errors
///
/// A 500 without a reason, with the message of the real server, when the webhook cannot be called or returns
/// an unexpected response.
pub async fn convert(
    client: &WebhookClient,
    conversion: &Value,
    kind: &str,
    objects: Vec<Value>,
    desired_api_version: &str,
) -> Result<Vec<Value>, StatusError> {
    let mut converted = Vec::with_capacity(objects.len());
    for mut object in objects {
        if object["apiVersion"] == desired_api_version {
            converted.push(object);
        } else if conversion["strategy"] == "Webhook" {
            converted.push(convert_by_webhook(client, conversion, kind, object, desired_api_version).await?);
        } else {
            object["apiVersion"] = json!(desired_api_version);
            converted.push(object);
        }
    }
    Ok(converted)
}

async fn convert_by_webhook(
    client: &WebhookClient,
    conversion: &Value,
    kind: &str,
    object: Value,
    desired: &str,
) -> Result<Value, StatusError> {
    let from = object["apiVersion"].as_str().unwrap_or_default().to_owned();
    let subject = format!("conversion webhook for {from}, Kind={kind}");
    let failed = |problem: String| StatusError::new(500, "", format!("{subject} failed: {problem}"));
    let webhook = &conversion["webhook"];
    let review_version = webhook["conversionReviewVersions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .find(|version| KNOWN_REVIEWS.contains(version))
        .ok_or_else(|| failed("no supported conversion review versions".to_owned()))?;
    let api_version = format!("apiextensions.k8s.io/{review_version}");
    let uid = request_uid();
    let review = json!({
        "kind": "ConversionReview", "apiVersion": api_version,
        "request": {"uid": uid, "desiredAPIVersion": desired, "objects": [object]},
        "response": null,
    });
    let answer = client
        .post(&webhook["clientConfig"], &review, TIMEOUT)
        .await
        .map_err(|error| failed(error.to_string()))?;
    let response = answer.get("response").filter(|response| response.is_object());
    let response = response.ok_or_else(|| failed("no response provided".to_owned()))?;
    check_envelope(response, &uid).map_err(failed)?;
    let objects = response["convertedObjects"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let [answered] = objects else {
        let count = objects.len();
        return Err(StatusError::new(
            500,
            "",
            format!("{subject} returned {count} objects, expected 1"),
        ));
    };
    accept(&object, answered, kind, desired)
        .map_err(|problem| StatusError::new(500, "", format!("{subject} returned invalid object{problem}")))
}

/// Checks `uid` and `result` of a response.
fn check_envelope(response: &Value, uid: &str) -> Result<(), String> {
    let answered = response["uid"].as_str().unwrap_or_default();
    if answered != uid {
        return Err(format!("expected response.uid={uid:?}, got {answered:?}"));
    }
    let result = &response["result"];
    let status = result["status"].as_str().unwrap_or_default();
    if status == "Success" {
        return Ok(());
    }
    match result["message"].as_str() {
        Some(message) if !message.is_empty() => Err(message.to_owned()),
        _ => Err(format!("response.result.status was '{status}', not 'Success'")),
    }
}

/// Returns the converted object with the metadata of the original, except for labels and annotations.
fn accept(original: &Value, answered: &Value, kind: &str, desired: &str) -> Result<Value, String> {
    let text = |object: &Value, pointer: &str| {
        object
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let version = text(answered, "/apiVersion");
    if version != desired {
        return Err(format!(
            " at index 0: invalid groupVersion (expected {desired}, received {version})"
        ));
    }
    if answered["kind"] != kind {
        return Err(format!(
            " at index 0: invalid kind (expected {kind}, received {})",
            text(answered, "/kind")
        ));
    }
    if !answered["metadata"].is_object() {
        return Err(": missing metadata in converted object".to_owned());
    }
    for (pointer, word) in [
        ("/metadata/name", "name"),
        ("/metadata/namespace", "namespace"),
        ("/metadata/uid", "UID"),
    ] {
        let (before, after) = (text(original, pointer), text(answered, pointer));
        if before != after {
            return Err(format!(": must have the same {word}: {before} != {after}"));
        }
    }
    let mut accepted = answered.clone();
    let mut metadata = original["metadata"].clone();
    for field in ["labels", "annotations"] {
        match answered["metadata"].get(field).filter(|value| !value.is_null()) {
            Some(value) => metadata[field] = value.clone(),
            None => {
                if let Some(metadata) = metadata.as_object_mut() {
                    metadata.remove(field);
                }
            }
        }
    }
    accepted["metadata"] = metadata;
    Ok(accepted)
}

/// Returns a random UUID for a request to a webhook.
pub(crate) fn request_uid() -> String {
    let mut bytes: [u8; 16] = rand::rng().random();
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(version: &str) -> Value {
        json!({"apiVersion": format!("g/{version}"), "kind": "K",
               "metadata": {"name": "a", "uid": "u", "finalizers": ["f"], "labels": {"old": "1"}}})
    }

    #[test]
    fn only_labels_and_annotations_of_the_metadata_change() {
        let mut answered = object("v2");
        answered["metadata"] =
            json!({"name": "a", "uid": "u", "finalizers": [], "annotations": {"new": "1"}});
        answered["spec"] = json!({"x": 1});
        let accepted = accept(&object("v1"), &answered, "K", "g/v2").unwrap();
        assert_eq!(
            accepted["metadata"],
            json!({"name": "a", "uid": "u", "finalizers": ["f"], "annotations": {"new": "1"}})
        );
        assert_eq!(accepted["spec"], json!({"x": 1}));
    }

    #[test]
    fn a_response_with_another_object_is_rejected() {
        let original = object("v1");
        let cases: [(&str, Value, &str); 4] = [
            (
                "/apiVersion",
                json!("g/v1"),
                " at index 0: invalid groupVersion (expected g/v2, received g/v1)",
            ),
            (
                "/kind",
                json!("Other"),
                " at index 0: invalid kind (expected K, received Other)",
            ),
            (
                "/metadata/name",
                json!("renamed"),
                ": must have the same name: a != renamed",
            ),
            ("/metadata/uid", json!("x"), ": must have the same UID: u != x"),
        ];
        for (pointer, value, expected) in cases {
            let mut answered = object("v2");
            *answered.pointer_mut(pointer).unwrap() = value;
            assert_eq!(accept(&original, &answered, "K", "g/v2").unwrap_err(), expected);
        }
    }

    #[test]
    fn a_failed_result_fails_the_conversion() {
        let response = |uid: &str, result: Value| json!({"uid": uid, "result": result});
        assert_eq!(
            check_envelope(&response("u", json!({"status": "Success"})), "u"),
            Ok(())
        );
        for (answer, expected) in [
            (
                response("x", json!({"status": "Success"})),
                "expected response.uid=\"u\", got \"x\"",
            ),
            (
                response("u", json!({"status": "Failed", "message": "no such size"})),
                "no such size",
            ),
            (
                response("u", json!({"status": "Failed"})),
                "response.result.status was 'Failed', not 'Success'",
            ),
        ] {
            assert_eq!(check_envelope(&answer, "u").unwrap_err(), expected);
        }
    }
}
