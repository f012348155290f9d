//! The AdmissionReview (`admission.k8s.io/v1`) of the guard: requests and answers.

use serde_json::{Value, json};
use windlass_object::{names, object};

use super::{denial::Refused, excerpt};
use crate::admission::review::{self, InvalidReview, ReviewReader};

/// A change that the API server sends for review: the fields that the guard needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Review {
    uid: String,
    user: String,
    before: Option<Value>,
    after: Option<Value>,
}

/// The kind that a review is about.
pub(super) struct ReviewedKind {
    kind: &'static str,
    group: &'static str,
    resource: &'static str,
}

pub(super) const CRD: ReviewedKind = ReviewedKind {
    kind: "CustomResourceDefinition",
    group: "apiextensions.k8s.io",
    resource: "customresourcedefinitions",
};

pub(super) const BUNDLE_DEPLOYMENT: ReviewedKind = ReviewedKind {
    kind: "BundleDeployment",
    group: names::GROUP,
    resource: "bundledeployments",
};

impl Review {
    /// Reads a request about a CRD.
    ///
    /// # Errors
    ///
    /// When a field is missing or invalid.
    pub fn read(body: &[u8]) -> Result<Self, InvalidReview> {
        Self::read_about(&CRD, body)
    }

    /// Reads a request about a BundleDeployment.
    ///
    /// # Errors
    ///
    /// When a field is missing or invalid.
    pub fn read_bundle_deployment(body: &[u8]) -> Result<Self, InvalidReview> {
        Self::read_about(&BUNDLE_DEPLOYMENT, body)
    }

    fn read_about(subject: &ReviewedKind, body: &[u8]) -> Result<Self, InvalidReview> {
        let review = excerpt::read(body).map_err(|error| InvalidReview {
            kind: subject.kind,
            problems: vec![format!("the body cannot be read: {error}")],
        })?;
        Self::from_value(subject, &review)
    }

    pub(super) fn from_value(subject: &ReviewedKind, review: &Value) -> Result<Self, InvalidReview> {
        let mut reader = ReviewReader::new(review);
        reader.require("request.resource.group", subject.group);
        reader.require("request.resource.resource", subject.resource);
        let uid = reader.text("request.uid");
        let user = reader.text("request.userInfo.username");
        let operation = reader.text("request.operation");
        let (has_old, has_new) = match operation.as_str() {
            "CREATE" => (false, true),
            "UPDATE" => (true, true),
            "DELETE" => (true, false),
            "" => (false, false),
            other => {
                let problem = format!("request.operation: expected CREATE, UPDATE or DELETE, got {other:?}");
                reader.problems.push(problem);
                (false, false)
            }
        };
        let before = has_old.then(|| reader.object("request.oldObject"));
        let after = has_new.then(|| reader.object("request.object"));
        reader.finish(subject.kind)?;
        Ok(Self {
            uid,
            user,
            before,
            after,
        })
    }

    /// Returns the name of the user who requested the change.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Returns the object before the change; `None` for a creation.
    pub fn old_object(&self) -> Option<&Value> {
        self.before.as_ref()
    }

    /// Returns the object after the change; `None` for a deletion.
    pub fn new_object(&self) -> Option<&Value> {
        self.after.as_ref()
    }

    /// Returns the BundleDeployment that the CRD belonged to before the change.
    pub fn owner(&self) -> Option<&str> {
        object::label(self.old_object()?, names::BUNDLE_DEPLOYMENT)
    }

    /// Returns the answer, as an AdmissionReview.
    pub fn answer(&self, verdict: &Result<(), Refused>) -> Value {
        let mut response = json!({ "uid": self.uid, "allowed": verdict.is_ok() });
        if let Err(refused) = verdict {
            response["status"] =
                json!({ "code": 403, "reason": "Forbidden", "message": refused.to_string() });
        }
        review::answer(response)
    }
}
