//! AdmissionReview (`admission.k8s.io`): what is asked of an admission webhook, and which answers the API server takes.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use thiserror::Error;
use windlass_object::object;

use super::{
    admission_request::{AdmissionRequest, RequestOperation},
    admission_webhook::{AdmissionType, AdmissionWebhook},
};

/// Why the API server would take an answer for none.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the message says what each field is")]
pub enum AdmissionProblem {
    /// Not a review, or one of another version.
    #[error("expected an AdmissionReview of {expected}, got {got}")]
    WrongReview { expected: String, got: String },
    /// There is no response in it.
    #[error("the AdmissionReview has no response")]
    NoResponse,
    /// The answer is to another request.
    #[error("expected response.uid={expected:?}, got {got:?}")]
    WrongUid { expected: String, got: String },
    /// A field is of another type than its own.
    #[error("response.{field} is not {expected}")]
    WrongType {
        field: &'static str,
        expected: &'static str,
    },
    /// A webhook that may not change objects sends a patch.
    #[error("a validating webhook may not return response.{field}")]
    PatchOfValidating { field: &'static str },
    /// One of patch and patchType is there without the other.
    #[error("response.{present} is there without response.{missing}")]
    HalfAPatch {
        present: &'static str,
        missing: &'static str,
    },
    /// The type of the patch is unknown.
    #[error("response.patchType is {got:?}, expected \"JSONPatch\"")]
    PatchType { got: String },
    /// The patch is none.
    #[error("response.patch is not a JSON patch in base64")]
    Undecodable,
    /// There is nothing that could be changed.
    #[error("response.patch changes an object that is deleted")]
    PatchOfDeleted,
}

/// The user that a webhook is told to have sent the request.
const USER: &str = "windlass.dev:proof";

/// The body that is posted to `webhook`: a dry run (KEP-576), so nothing comes of it but the answer.
pub fn review(webhook: &AdmissionWebhook<'_>, request: &AdmissionRequest, uid: &str) -> Value {
    let target = &request.target;
    let kind = json!({"group": target.group, "version": target.version, "kind": target.kind});
    let resource = json!({"group": target.group, "version": target.version, "resource": target.plural});
    let object = |is_there: bool| {
        if is_there {
            request.object.clone()
        } else {
            Value::Null
        }
    };
    let operation = target.operation;
    let mut asked = json!({
        "uid": uid,
        "kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource,
        "name": object::text(&request.object, "/metadata/name").unwrap_or_default(),
        "operation": operation.name(),
        "userInfo": {"username": USER, "groups": ["system:authenticated"]},
        "object": object(operation != RequestOperation::Delete),
        "oldObject": object(operation != RequestOperation::Create),
        "dryRun": true,
        "options": {"apiVersion": "meta.k8s.io/v1", "kind": operation.options(), "dryRun": ["All"]},
    });
    if let Some(namespace) = object::text(&request.object, "/metadata/namespace") {
        asked["namespace"] = namespace.into();
    }
    json!({"apiVersion": api_version(webhook), "kind": "AdmissionReview", "request": asked})
}

/// Checks whether the API server would accept `answer` as the response to the request `uid`. A denial counts
/// as an answer.
///
/// # Errors
///
/// When the API server would fail the request, as if the webhook had not answered; the rules are those of its
/// `VerifyAdmissionResponse` (webhook/request/admissionreview.go) and `callAttrMutatingHook`
/// (mutating/dispatcher.go).
pub fn judge(
    webhook: &AdmissionWebhook<'_>,
    operation: RequestOperation,
    uid: &str,
    answer: &Value,
) -> Result<(), AdmissionProblem> {
    let is_v1 = webhook.review_version == "v1";
    let text = |pointer| object::text(answer, pointer).unwrap_or_default().to_owned();
    let got = format!("{} {}", text("/apiVersion"), text("/kind"));
    let wrong_review = |expected: String| AdmissionProblem::WrongReview {
        expected,
        got: got.trim().to_owned(),
    };
    if !answer.is_object() {
        return Err(wrong_review(api_version(webhook)));
    }
    let response = match answer.get("response") {
        None | Some(Value::Null) => return Err(AdmissionProblem::NoResponse),
        Some(response) => response,
    };
    types(response)?;
    if is_v1 && text("/response/uid") != uid {
        return Err(AdmissionProblem::WrongUid {
            expected: uid.to_owned(),
            got: text("/response/uid"),
        });
    }
    if is_v1 && got != format!("{} AdmissionReview", api_version(webhook)) {
        return Err(wrong_review(api_version(webhook)));
    }
    let patch = present(response, "patch").filter(|patch| !patch.is_empty());
    let patch_type = present(response, "patchType");
    if webhook.admission_type == AdmissionType::Validating {
        let field = match (patch, patch_type) {
            _ if !is_v1 => return Ok(()),
            (Some(_), _) => "patch",
            (None, Some(_)) => "patchType",
            (None, None) => return Ok(()),
        };
        return Err(AdmissionProblem::PatchOfValidating { field });
    }
    if is_v1 {
        paired(patch, patch_type)?;
    }
    let is_allowed = response.get("allowed").and_then(Value::as_bool).unwrap_or(false);
    match patch {
        Some(patch) if is_allowed => {
            // Of v1beta1 the type of the patch is not looked at.
            changes(
                patch,
                patch_type.filter(|_| is_v1).unwrap_or("JSONPatch"),
                operation,
            )
        }
        _ => Ok(()),
    }
}

/// Patch and patchType come together.
fn paired(patch: Option<&str>, patch_type: Option<&str>) -> Result<(), AdmissionProblem> {
    let (present, missing) = match (patch, patch_type) {
        (Some(_), None) => ("patch", "patchType"),
        (None, Some(_)) => ("patchType", "patch"),
        _ => return Ok(()),
    };
    Err(AdmissionProblem::HalfAPatch { present, missing })
}

/// A patch that is carried out is a JSON patch, of something that is there.
fn changes(patch: &str, patch_type: &str, operation: RequestOperation) -> Result<(), AdmissionProblem> {
    let decoded = STANDARD
        .decode(patch)
        .map_err(|_| AdmissionProblem::Undecodable)?;
    let operations: Vec<Value> =
        serde_json::from_slice(&decoded).map_err(|_| AdmissionProblem::Undecodable)?;
    if operations.is_empty() {
        return Ok(());
    }
    if operation == RequestOperation::Delete {
        return Err(AdmissionProblem::PatchOfDeleted);
    }
    if patch_type != "JSONPatch" {
        return Err(AdmissionProblem::PatchType {
            got: patch_type.to_owned(),
        });
    }
    if operations.iter().all(Value::is_object) {
        Ok(())
    } else {
        Err(AdmissionProblem::Undecodable)
    }
}

/// What Go's decoder would not read into the fields of a response.
fn types(response: &Value) -> Result<(), AdmissionProblem> {
    let wrong = |field, expected| Err(AdmissionProblem::WrongType { field, expected });
    let is_text = |field: &str| {
        response
            .get(field)
            .is_none_or(|value| value.is_null() || value.is_string())
    };
    for field in ["uid", "patch", "patchType"] {
        if !is_text(field) {
            return wrong(field, "a string");
        }
    }
    let is_flag = |value: &Value| value.is_null() || value.is_boolean();
    if !response.get("allowed").is_none_or(is_flag) {
        return wrong("allowed", "a boolean");
    }
    let is_base64 = |patch: &str| STANDARD.decode(patch).is_ok();
    if !present(response, "patch").is_none_or(is_base64) {
        return Err(AdmissionProblem::Undecodable);
    }
    if response.is_object() {
        Ok(())
    } else {
        Err(AdmissionProblem::NoResponse)
    }
}

fn present<'a>(response: &'a Value, field: &str) -> Option<&'a str> {
    response.get(field).and_then(Value::as_str)
}

fn api_version(webhook: &AdmissionWebhook<'_>) -> String {
    format!("admission.k8s.io/{}", webhook.review_version)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::install::proof::{Provenance, RequestTarget};

    fn webhook(admission_type: AdmissionType, review_version: &str) -> AdmissionWebhook<'_> {
        AdmissionWebhook {
            name: "w",
            admission_type,
            service: "s",
            port: 443,
            path: "/",
            review_version,
            timeout: Duration::from_secs(1),
            rules: &[],
        }
    }

    /// The answer `{uid: 1, allowed: true}` with changes, a merge patch.
    fn answer(changes: Value) -> Value {
        let mut answer = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "response": {"uid": "1", "allowed": true},
        });
        json_patch::merge(&mut answer, &changes);
        answer
    }

    fn problem(admission_type: AdmissionType, version: &str, answer: &Value) -> String {
        judge(
            &webhook(admission_type, version),
            RequestOperation::Create,
            "1",
            answer,
        )
        .err()
        .map(|problem| problem.to_string())
        .unwrap_or_default()
    }

    #[test]
    fn what_the_api_server_takes_for_no_answer_is_none() {
        use AdmissionType::{Mutating, Validating};
        let patch = STANDARD.encode(r#"[{"op": "add", "path": "/spec/a", "value": 1}]"#);
        let response = |changes: Value| answer(json!({"response": changes}));
        for (admission_type, answer, expected) in [
            (Validating, answer(json!({})), ""),
            (
                Validating,
                response(json!({"allowed": false, "status": {"code": 403}})),
                "",
            ),
            (Validating, response(json!({"allowed": null})), ""),
            (
                Validating,
                json!([]),
                "expected an AdmissionReview of admission.k8s.io/v1, got",
            ),
            (Validating, answer(json!({"response": null})), "no response"),
            (Validating, answer(json!({"response": "yes"})), "no response"),
            (
                Validating,
                response(json!({"uid": "2"})),
                "expected response.uid=\"1\", got \"2\"",
            ),
            (
                Validating,
                response(json!({"uid": null})),
                "expected response.uid=\"1\", got \"\"",
            ),
            (
                Validating,
                answer(json!({"kind": "ConversionReview"})),
                "admission.k8s.io/v1 ConversionReview",
            ),
            (
                Validating,
                answer(json!({"apiVersion": "admission.k8s.io/v1beta1"})),
                "got admission.k8s.io/v1beta1",
            ),
            (
                Validating,
                answer(json!({"kind": null})),
                "expected an AdmissionReview",
            ),
            (
                Validating,
                response(json!({"allowed": "true"})),
                "response.allowed is not a boolean",
            ),
            (
                Validating,
                response(json!({"uid": 1})),
                "response.uid is not a string",
            ),
            (
                Validating,
                response(json!({"patch": patch})),
                "may not return response.patch",
            ),
            (
                Validating,
                response(json!({"patchType": "JSONPatch"})),
                "may not return response.patchType",
            ),
            (
                Mutating,
                response(json!({"patch": patch, "patchType": "JSONPatch"})),
                "",
            ),
            (Mutating, response(json!({"patch": ""})), ""),
            (
                Mutating,
                response(json!({"patch": patch})),
                "response.patch is there without response.patchType",
            ),
            (
                Mutating,
                response(json!({"patchType": "JSONPatch"})),
                "response.patchType is there without",
            ),
            (
                Mutating,
                response(json!({"patch": patch, "patchType": "Merge"})),
                "patchType is \"Merge\"",
            ),
            (
                Mutating,
                response(json!({"patch": "%", "patchType": "JSONPatch"})),
                "not a JSON patch",
            ),
            (
                Mutating,
                response(json!({"patch": STANDARD.encode("{}"), "patchType": "JSONPatch"})),
                "not a JSON patch",
            ),
            (
                Mutating,
                response(json!({"allowed": false, "patch": STANDARD.encode("{}"), "patchType": "JSONPatch"})),
                "",
            ),
        ] {
            let problem = problem(admission_type, "v1", &answer);
            assert_eq!(problem.is_empty(), expected.is_empty(), "{answer}: {problem}");
            assert!(problem.contains(expected), "{answer}: {problem}");
        }
    }

    #[test]
    fn of_the_older_review_only_the_response_is_looked_at() {
        use AdmissionType::{Mutating, Validating};
        let patch = STANDARD.encode("[]");
        for (admission_type, changes, is_answer) in [
            (Validating, json!({"uid": "2", "patch": patch}), true),
            (Mutating, json!({"uid": "2", "patch": patch}), true),
            (Mutating, json!({"patch": STANDARD.encode("1")}), false),
        ] {
            let answer = answer(json!({"apiVersion": null, "response": changes}));
            let problem = problem(admission_type, "v1beta1", &answer);
            assert_eq!(problem.is_empty(), is_answer, "{answer}: {problem}");
        }
    }

    #[test]
    fn each_operation_has_the_objects_that_the_api_server_sends() {
        let object = json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "a", "namespace": "n"}});
        for (operation, has_object, has_old) in [
            (RequestOperation::Create, true, false),
            (RequestOperation::Update, true, true),
            (RequestOperation::Delete, false, true),
        ] {
            let request = AdmissionRequest {
                target: RequestTarget {
                    group: "g".into(),
                    version: "v1".into(),
                    plural: "ks".into(),
                    kind: "K".into(),
                    operation,
                    crd: None,
                },
                object: object.clone(),
                provenance: Provenance::Stored,
            };
            let review = review(&webhook(AdmissionType::Validating, "v1"), &request, "7");
            let asked = &review["request"];
            assert_eq!(review["apiVersion"], "admission.k8s.io/v1");
            assert_eq!((&asked["uid"], &asked["dryRun"]), (&json!("7"), &json!(true)));
            assert_eq!(
                asked["resource"],
                json!({"group": "g", "version": "v1", "resource": "ks"})
            );
            assert_eq!((&asked["name"], &asked["namespace"]), (&json!("a"), &json!("n")));
            assert_eq!(asked["object"] == object, has_object);
            assert_eq!(asked["oldObject"] == object, has_old);
            assert_eq!(asked["operation"], operation.name());
        }
    }

    proptest! {
        #[test]
        fn foreign_answers_never_panic(text in "\\PC{0,200}") {
            let answer = serde_json::from_str(&text).unwrap_or(Value::String(text));
            for admission_type in [AdmissionType::Validating, AdmissionType::Mutating] {
                for version in ["v1", "v1beta1"] {
                    let _ = judge(&webhook(admission_type, version), RequestOperation::Create, "1", &answer);
                }
            }
        }
    }
}
