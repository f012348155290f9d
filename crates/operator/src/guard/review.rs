//! AdmissionReview (`admission.k8s.io/v1`): what the API server asks, and how it is answered.

use serde_json::{Value, json};
use windlass_object::{names, object};

use super::{denial::Refused, excerpt};
use crate::admission::review::{self, InvalidReview, ReviewReader};

/// A change that the API server asks about: as much of it as the guard needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Review {
    uid: String,
    user: String,
    before: Option<Value>,
    after: Option<Value>,
}

/// What a question is about.
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

// === impl Review ===

impl Review {
    /// Reads the body of a request about a CRD.
    ///
    /// # Errors
    ///
    /// When something is missing in it, or is not what it should be.
    pub fn read(body: &[u8]) -> Result<Self, InvalidReview> {
        Self::read_about(&CRD, body)
    }

    /// Reads the body of a request about a BundleDeployment.
    ///
    /// # Errors
    ///
    /// When something is missing in it, or is not what it should be.
    pub fn read_bundle_deployment(body: &[u8]) -> Result<Self, InvalidReview> {
        Self::read_about(&BUNDLE_DEPLOYMENT, body)
    }

    fn read_about(subject: &ReviewedKind, body: &[u8]) -> Result<Self, InvalidReview> {
        let review = excerpt::read(body).map_err(|error| InvalidReview {
            of: subject.kind,
            problems: vec![format!("the body cannot be read: {error}")],
        })?;
        Self::of(subject, &review)
    }

    pub(super) fn of(subject: &ReviewedKind, review: &Value) -> Result<Self, InvalidReview> {
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

    /// Who asks for the change.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The object as it is; `None` where it is created.
    pub fn before(&self) -> Option<&Value> {
        self.before.as_ref()
    }

    /// The object as it would be; `None` where it is deleted.
    pub fn after(&self) -> Option<&Value> {
        self.after.as_ref()
    }

    /// The BundleDeployment that the CRD belongs to as it is.
    pub fn owner(&self) -> Option<&str> {
        object::label(self.before()?, names::BUNDLE_DEPLOYMENT)
    }

    /// The answer, as an AdmissionReview.
    pub fn answer(&self, verdict: &Result<(), Refused>) -> Value {
        let mut response = json!({ "uid": self.uid, "allowed": verdict.is_ok() });
        if let Err(refused) = verdict {
            response["status"] =
                json!({ "code": 403, "reason": "Forbidden", "message": refused.to_string() });
        }
        review::answer(response)
    }
}
