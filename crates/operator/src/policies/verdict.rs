//! Answers to AdmissionReviews.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use policy::{
    OverrideOutcome, PolicyProblem, ValidationOutcome,
    api::ValidationAction,
    patch::{JsonPatch, JsonPatchOperation},
};
use serde_json::{Map, Value, json};

use crate::admission::review;

/// The answer to a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Verdict {
    /// Why the request is refused; `None` if it is allowed.
    pub(super) refusal: Option<RequestRefusal>,
    /// The change of the object.
    pub(super) patch: JsonPatch,
    /// Warnings for the client.
    pub(super) warnings: Vec<String>,
    /// The value of the audit annotation.
    pub(super) audited: Option<String>,
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RequestRefusal {
    code: u16,
    reason: &'static str,
    message: String,
}

/// The name of the audit annotation with findings of audit rules; the API server prefixes it with the name of
/// the webhook.
const AUDIT_ANNOTATION: &str = "findings";

impl Verdict {
    /// Converts the result of override policies.
    pub(super) fn from_override(outcome: OverrideOutcome) -> Self {
        let refusal = outcome
            .refusal
            .map(|failure| RequestRefusal::failed(failure.to_string()));
        Self {
            refusal,
            patch: outcome.patch,
            ..Self::default()
        }
    }

    /// Converts the result of validate policies.
    pub(super) fn from_validation(outcome: &ValidationOutcome) -> Self {
        let refusal = outcome.message().map(|message| {
            let is_denied = outcome.findings_with(ValidationAction::Deny).next().is_some();
            if is_denied {
                RequestRefusal::denied(message)
            } else {
                RequestRefusal::failed(message)
            }
        });
        let audited: Vec<_> = outcome
            .findings_with(ValidationAction::Audit)
            .map(|finding| format!("{}: {}", finding.policy, finding.reason))
            .collect();
        Self {
            refusal,
            warnings: outcome.warnings(),
            audited: (!audited.is_empty()).then(|| audited.join("; ")),
            ..Self::default()
        }
    }

    /// Refuses a policy with these problems.
    pub(super) fn from_problems(problems: &[PolicyProblem]) -> Self {
        let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
        Self {
            refusal: (!problems.is_empty()).then(|| RequestRefusal::invalid(problems.join("; "))),
            ..Self::default()
        }
    }

    /// Returns the AdmissionReview that answers the request with this `uid`.
    pub(super) fn answer(&self, uid: &str) -> Value {
        let mut response = Map::new();
        response.insert("uid".into(), uid.into());
        response.insert("allowed".into(), self.refusal.is_none().into());
        match &self.refusal {
            Some(refusal) => {
                let RequestRefusal {
                    code,
                    reason,
                    message,
                } = refusal;
                let status = json!({"code": code, "reason": reason, "message": message});
                response.insert("status".into(), status);
            }
            None if !self.patch.is_empty() => {
                let patch: Value = self.patch.iter().map(JsonPatchOperation::to_json).collect();
                response.insert("patchType".into(), "JSONPatch".into());
                response.insert("patch".into(), STANDARD.encode(patch.to_string()).into());
            }
            None => {}
        }
        if !self.warnings.is_empty() {
            response.insert("warnings".into(), json!(self.warnings));
        }
        if let Some(audited) = &self.audited {
            response.insert("auditAnnotations".into(), json!({AUDIT_ANNOTATION: audited}));
        }
        review::answer(response.into())
    }
}

impl RequestRefusal {
    /// A policy denies the request.
    fn denied(message: String) -> Self {
        Self {
            code: 403,
            reason: "Forbidden",
            message,
        }
    }

    /// A policy with failure policy `Fail` failed.
    fn failed(message: String) -> Self {
        Self {
            code: 500,
            reason: "InternalError",
            message,
        }
    }

    /// The object itself is invalid.
    fn invalid(message: String) -> Self {
        Self {
            code: 422,
            reason: "Invalid",
            message,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allowed_answer_has_no_status_and_a_denied_one_no_patch() {
        let patch = JsonPatchOperation::read(&json!([{"op": "add", "path": "/a", "value": 1}])).unwrap();
        let mut verdict = Verdict {
            patch,
            warnings: vec!["w".to_owned()],
            ..Verdict::default()
        };
        let answer = verdict.answer("u-1");
        assert_eq!(answer["kind"], "AdmissionReview");
        let response = &answer["response"];
        assert_eq!(
            (&response["uid"], &response["allowed"]),
            (&json!("u-1"), &json!(true))
        );
        assert_eq!(response["warnings"], json!(["w"]));
        let patch = STANDARD.decode(response["patch"].as_str().unwrap()).unwrap();
        assert_eq!(patch, br#"[{"op":"add","path":"/a","value":1}]"#);
        assert!(response.get("status").is_none());

        verdict.refusal = Some(RequestRefusal::denied("no".to_owned()));
        let answer = verdict.answer("u-1");
        assert_eq!(
            answer["response"],
            json!({"uid": "u-1", "allowed": false, "warnings": ["w"],
                "status": {"code": 403, "reason": "Forbidden", "message": "no"}})
        );
        assert_eq!(
            Verdict::default().answer("u")["response"],
            json!({"uid": "u", "allowed": true})
        );
    }
}
