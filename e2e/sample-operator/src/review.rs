//! The review protocols: `AdmissionReview` (`admission.k8s.io`) and `ConversionReview`
//! (`apiextensions.k8s.io`), each in v1 and v1beta1. The response has the version of the request.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::{admission, conversion::Converter};

/// The type of the webhook at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SampleWebhook {
    /// A mutating webhook.
    Mutate,
    /// A validating webhook.
    Validate,
    /// A conversion webhook.
    Convert,
    /// A webhook that accepts any review and admits everything.
    StandIn,
}

/// Why a body is not a review for this path.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReviewError {
    /// It is not JSON.
    #[error("the body is not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// It has another kind, or one for another path.
    #[error("expected {expected}, got {kind:?} of {api_version:?}")]
    Kind {
        expected: &'static str,
        api_version: String,
        kind: String,
    },
    /// It has no `request` with a `uid`.
    #[error("the review has no request with a uid")]
    Request,
}

/// Returns the response to a review.
pub(crate) fn answer(
    body: &[u8],
    webhook: SampleWebhook,
    converter: &Converter,
) -> Result<Value, ReviewError> {
    let review: Value = serde_json::from_slice(body)?;
    let api_version = review["apiVersion"].as_str().unwrap_or_default();
    let kind = review["kind"].as_str().unwrap_or_default();
    let request = &review["request"];
    let uid = request["uid"].as_str().ok_or(ReviewError::Request);
    let response = match (kind, api_version) {
        ("AdmissionReview", "admission.k8s.io/v1" | "admission.k8s.io/v1beta1")
            if webhook != SampleWebhook::Convert =>
        {
            admit(request, uid?, webhook)
        }
        ("ConversionReview", "apiextensions.k8s.io/v1" | "apiextensions.k8s.io/v1beta1")
            if matches!(webhook, SampleWebhook::Convert | SampleWebhook::StandIn) =>
        {
            convert(request, uid?, converter)
        }
        _ => {
            let expected = match webhook {
                SampleWebhook::Mutate | SampleWebhook::Validate => "an AdmissionReview",
                SampleWebhook::Convert => "a ConversionReview",
                SampleWebhook::StandIn => "an AdmissionReview or a ConversionReview",
            };
            return Err(ReviewError::Kind {
                expected,
                api_version: api_version.to_owned(),
                kind: kind.to_owned(),
            });
        }
    };
    Ok(json!({"apiVersion": api_version, "kind": kind, "response": response}))
}

/// Returns the response of a webhook that cannot convert any of the objects.
pub(crate) fn failed_conversion(body: &[u8]) -> Value {
    let review: Value = serde_json::from_slice(body).unwrap_or_default();
    let result =
        json!({"status": "Failure", "message": "cannot convert, as requested by --fault refuse-conversion"});
    json!({
        "apiVersion": review["apiVersion"], "kind": review["kind"],
        "response": {"uid": review["request"]["uid"], "convertedObjects": [], "result": result},
    })
}

fn admit(request: &Value, uid: &str, webhook: SampleWebhook) -> Value {
    let object = &request["object"];
    if webhook == SampleWebhook::Validate
        && let Err(message) = admission::validate(object)
    {
        return json!({"uid": uid, "allowed": false, "status": {"code": 403, "message": message}});
    }
    if webhook == SampleWebhook::Mutate {
        let mut mutated = object.clone();
        admission::mutate(&mut mutated);
        let patch = json_patch::diff(object, &mutated);
        if !patch.0.is_empty() {
            let patch = STANDARD.encode(json!(patch).to_string());
            return json!({"uid": uid, "allowed": true, "patchType": "JSONPatch", "patch": patch});
        }
    }
    json!({"uid": uid, "allowed": true})
}

fn convert(request: &Value, uid: &str, converter: &Converter) -> Value {
    let desired = request["desiredAPIVersion"].as_str().unwrap_or_default();
    let objects = request["objects"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let converted: Result<Vec<Value>, _> = objects
        .iter()
        .map(|object| converter.convert(object, desired))
        .collect();
    match converted {
        Ok(objects) => json!({"uid": uid, "convertedObjects": objects, "result": {"status": "Success"}}),
        Err(error) => {
            tracing::info!(%error, desired, "Cannot convert an object");
            json!({"uid": uid, "result": {"status": "Failure", "message": error.to_string()}})
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::args::SampleVersion;

    fn converter() -> Converter {
        Converter {
            versions: vec![SampleVersion::V1beta1, SampleVersion::V1, SampleVersion::V2],
            wrong_version: false,
            lose_field: false,
        }
    }

    fn answer_review(webhook: SampleWebhook, review: &Value) -> Result<Value, ReviewError> {
        answer(review.to_string().as_bytes(), webhook, &converter())
    }

    fn admission(object: &Value) -> Value {
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {"uid": "u", "operation": "CREATE", "object": object}})
    }

    fn widget(size: i64) -> Value {
        json!({"apiVersion": "sample.windlass.dev/v1", "kind": "Widget", "metadata": {"name": "w"},
            "spec": {"size": size}})
    }

    #[test]
    fn a_mutation_returns_a_patch_that_produces_the_object() {
        let mut object = widget(1);
        let answer = answer_review(SampleWebhook::Mutate, &admission(&object)).unwrap();
        let patch = STANDARD
            .decode(answer["response"]["patch"].as_str().unwrap())
            .unwrap();
        let patch: json_patch::Patch = serde_json::from_slice(&patch).unwrap();
        json_patch::patch(&mut object, &patch).unwrap();
        assert_eq!(object["spec"], json!({"size": 1, "color": "blue"}));
        assert_eq!(
            object["metadata"]["annotations"]["sample.windlass.dev/mutated"],
            "true"
        );
        let again = answer_review(SampleWebhook::Mutate, &admission(&object)).unwrap();
        assert_eq!(again["response"], json!({"uid": "u", "allowed": true}));
    }

    #[test]
    fn a_negative_size_is_denied_by_validation_only() {
        let denied = answer_review(SampleWebhook::Validate, &admission(&widget(-1))).unwrap();
        assert_eq!(denied["response"]["allowed"], false);
        assert_eq!(
            denied["response"]["status"]["message"],
            "size must not be negative"
        );
        assert_eq!(
            answer_review(SampleWebhook::StandIn, &admission(&widget(-1))).unwrap()["response"]["allowed"],
            true
        );
    }

    #[test]
    fn a_deletion_without_an_object_is_admitted() {
        for webhook in [SampleWebhook::Mutate, SampleWebhook::Validate] {
            assert_eq!(
                answer_review(webhook, &admission(&Value::Null)).unwrap()["response"],
                json!({"uid": "u", "allowed": true})
            );
        }
    }

    #[test]
    fn a_response_has_the_version_of_its_review() {
        for version in ["apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1"] {
            let review = json!({"apiVersion": version, "kind": "ConversionReview",
                "request": {"uid": "u", "desiredAPIVersion": "sample.windlass.dev/v2", "objects": [widget(3)]}});
            let answer = answer_review(SampleWebhook::Convert, &review).unwrap();
            assert_eq!(answer["apiVersion"], version);
            assert_eq!(answer["response"]["result"]["status"], "Success");
            assert_eq!(
                answer["response"]["convertedObjects"][0]["spec"],
                json!({"dimensions": {"size": 3}})
            );
        }
    }

    #[test]
    fn a_review_on_the_wrong_path_is_rejected() {
        let error = answer_review(SampleWebhook::Convert, &admission(&widget(1))).unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"expected a ConversionReview, got "AdmissionReview" of "admission.k8s.io/v1""#
        );
    }

    proptest! {
        #[test]
        fn any_bytes_get_a_response_or_an_error(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            for webhook in [SampleWebhook::Mutate, SampleWebhook::Validate, SampleWebhook::Convert, SampleWebhook::StandIn] {
                drop(answer(&body, webhook, &converter()));
            }
        }
    }
}
