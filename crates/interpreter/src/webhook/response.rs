//! Conversion between responses and answers.

use json_patch::diff;
use serde_json::Value;
use thiserror::Error;
use webhook_transport::{
    Base64Bytes,
    go_json::{self, DecodeError},
};
use windlass_object::text::{shortened, tidied};

use super::{
    PatchObjectError, RequestStatus, ResourceInterpreterContext, ResourceInterpreterRequest,
    ResourceInterpreterResponse,
    context::{CONTEXT_KIND, JSON_PATCH},
    patch::apply_json_patch,
};
use crate::{
    Answer, Question,
    answer::{DependentObjectReference, canonicalize_quantities},
    customization::KARMADA_API_VERSION,
    error::OtherAnswerError,
};

/// Why a webhook's response is not a valid answer.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the message explains each field")]
pub enum WebhookAnswerError {
    /// The response cannot be decoded.
    #[error("cannot decode the response: {0}")]
    Decode(#[from] DecodeError),
    /// The response is of another kind.
    #[error("the response is a {kind:?} of {api_version:?}, not a {CONTEXT_KIND} of {KARMADA_API_VERSION}")]
    OtherType { api_version: String, kind: String },
    /// A field that the operation requires is absent.
    #[error("{0}: is missing")]
    Missing(
        /// The path of the field.
        &'static str,
    ),
    /// The response is for another request.
    #[error("response.uid: must be {expected:?}, as in the request, not {found:?}")]
    OtherUid {
        /// The ID of the request.
        expected: String,
        /// The ID in the response.
        found: String,
    },
    /// The webhook reports a failure.
    #[error("the webhook failed with status {code}: {message}")]
    Failure {
        /// The code in the response.
        code: i32,
        /// The message in the response.
        message: String,
    },
    /// The type of the patch is not supported.
    #[error("response.patchType: must be {JSON_PATCH}, not {0:?}")]
    OtherPatchType(
        /// The type in the response.
        String,
    ),
    /// The patch cannot be applied.
    #[error("response.patch: {0}")]
    Patch(#[from] PatchObjectError),
    /// Fields are invalid.
    #[error("response.{}", .0.join("; response."))]
    Fields(
        /// All problems, each with its field.
        Vec<String>,
    ),
}

/// Characters of a webhook's text that an error quotes.
const LONGEST_MESSAGE: usize = 512;

impl WebhookAnswerError {
    /// Reports whether `failurePolicy: Ignore` applies: the response is invalid. A failure that the webhook
    /// reports, or an invalid patch, is never ignored.
    pub fn is_ignorable(&self) -> bool {
        !matches!(self, Self::Failure { .. } | Self::Patch(_))
    }
}

impl Answer {
    /// Parses the response to the request `uid` for `question`.
    ///
    /// # Errors
    ///
    /// When the response is invalid or reports a failure.
    pub fn read_response(body: &[u8], uid: &str, question: Question<'_>) -> Result<Self, WebhookAnswerError> {
        let mut value = go_json::whole_value(body).map_err(DecodeError::Syntax)?;
        let mut wrong = Vec::new();
        canonical_quantities(&mut value, &mut wrong);
        let context: ResourceInterpreterContext<'_> = go_json::read_value(value)?;
        context.check_type()?;
        let response = context.response.ok_or(WebhookAnswerError::Missing("response"))?;
        if response.uid != uid {
            return Err(WebhookAnswerError::OtherUid {
                expected: uid.to_owned(),
                found: excerpt(&response.uid),
            });
        }
        if !response.successful {
            let status = response
                .status
                .ok_or(WebhookAnswerError::Missing("response.status"))?;
            return Err(WebhookAnswerError::Failure {
                code: status.code,
                message: excerpt(&status.message),
            });
        }
        if !wrong.is_empty() {
            return Err(WebhookAnswerError::Fields(wrong));
        }
        response.answer(question)
    }
}

impl ResourceInterpreterContext<'_> {
    /// Checks `apiVersion` and `kind` if they are present.
    pub(super) fn check_type(&self) -> Result<(), WebhookAnswerError> {
        let is_one_of = |found: &str, expected| found.is_empty() || found == expected;
        if is_one_of(&self.api_version, KARMADA_API_VERSION) && is_one_of(&self.kind, CONTEXT_KIND) {
            return Ok(());
        }
        Err(WebhookAnswerError::OtherType {
            api_version: excerpt(&self.api_version),
            kind: excerpt(&self.kind),
        })
    }
}

impl ResourceInterpreterResponse {
    /// Creates the response to a request. An object is sent as a patch of the requested one, if it differs.
    ///
    /// # Errors
    ///
    /// When the answer is for another operation.
    pub fn from_answer(
        request: &ResourceInterpreterRequest<'_>,
        answer: Answer,
    ) -> Result<Self, OtherAnswerError> {
        let mut response = Self {
            uid: request.uid.clone(),
            successful: true,
            status: Some(RequestStatus {
                message: String::new(),
                code: 200,
            }),
            ..Self::default()
        };
        match (request.question(), answer) {
            (
                Question::Replica { .. },
                Answer::Replica {
                    replicas,
                    requirements,
                },
            ) => {
                response.replicas = Some(replicas);
                response.replica_requirements = requirements;
            }
            (Question::Component { .. }, Answer::Component(components)) => response.components = components,
            (Question::Status { .. }, Answer::Status(status)) => {
                // An absent field could not be distinguished from a forgotten one.
                response.raw_status = Some(status.unwrap_or_else(|| Value::Object(serde_json::Map::new())));
            }
            (Question::Health { .. }, Answer::Health(healthy)) => response.healthy = Some(healthy),
            (Question::Dependency { .. }, Answer::Dependency(dependencies)) => {
                response.dependencies = dependencies;
            }
            (
                Question::ReviseReplica { .. } | Question::Retain { .. } | Question::AggregateStatus { .. },
                Answer::Object(object),
            ) => {
                let patch = diff(&request.object, &object);
                if !patch.is_empty() {
                    response.patch = Base64Bytes(serde_json::json!(patch).to_string().into_bytes());
                    response.patch_type = Some(JSON_PATCH.to_owned());
                }
            }
            _ => return Err(OtherAnswerError(request.operation)),
        }
        Ok(response)
    }

    /// Creates a response that reports a failure.
    pub fn failure(uid: impl Into<String>, code: u16, message: impl Into<String>) -> Self {
        Self {
            uid: uid.into(),
            successful: false,
            status: Some(RequestStatus {
                message: message.into(),
                code: code.into(),
            }),
            ..Self::default()
        }
    }

    /// Returns the answer to a question from a successful response.
    fn answer(self, question: Question<'_>) -> Result<Answer, WebhookAnswerError> {
        let missing = WebhookAnswerError::Missing;
        match question {
            Question::Replica { .. } => Ok(Answer::Replica {
                replicas: self.replicas.ok_or(missing("response.replicas"))?,
                requirements: self.replica_requirements,
            }),
            Question::Component { .. } => Ok(Answer::Component(self.components)),
            Question::Status { .. } => match self.raw_status {
                Some(status) => Ok(Answer::Status(Some(status))),
                None => Err(missing("response.rawStatus")),
            },
            Question::Health { .. } => {
                let healthy = self.healthy.ok_or(missing("response.healthy"))?;
                Ok(Answer::Health(healthy))
            }
            Question::Dependency { .. } => checked(self.dependencies),
            Question::ReviseReplica { object, .. }
            | Question::Retain { desired: object, .. }
            | Question::AggregateStatus { object, .. } => self.object(object),
        }
    }

    fn object(self, object: &Value) -> Result<Answer, WebhookAnswerError> {
        let patch_type = self.patch_type.filter(|patch_type| !patch_type.is_empty());
        match (self.patch.0.as_slice(), patch_type) {
            ([], None) => Ok(Answer::Object(object.clone())),
            ([], Some(_)) => Err(WebhookAnswerError::Missing("response.patch")),
            (_, None) => Err(WebhookAnswerError::Missing("response.patchType")),
            (patch, Some(patch_type)) if patch_type == JSON_PATCH => {
                Ok(Answer::Object(apply_json_patch(object, patch)?))
            }
            (_, Some(patch_type)) => Err(WebhookAnswerError::OtherPatchType(excerpt(&patch_type))),
        }
    }
}

/// Returns dependencies after validating each.
fn checked(dependencies: Vec<DependentObjectReference>) -> Result<Answer, WebhookAnswerError> {
    let wrong: Vec<_> = (0..)
        .zip(&dependencies)
        .filter_map(|(index, dependency): (usize, _)| {
            let problem = dependency.check().err()?;
            Some(format!("dependencies[{index}].{problem}"))
        })
        .collect();
    match wrong.is_empty() {
        true => Ok(Answer::Dependency(dependencies)),
        false => Err(WebhookAnswerError::Fields(wrong)),
    }
}

/// Rewrites the quantities in all `replicaRequirements` in their canonical form.
fn canonical_quantities(context: &mut Value, wrong: &mut Vec<String>) {
    let Some(response) = context.get_mut("response").and_then(Value::as_object_mut) else {
        return;
    };
    let mut canonical = |field: &str, requirements: &mut Value| {
        let found = canonicalize_quantities(requirements);
        wrong.extend(found.into_iter().map(|problem| format!("{field}.{problem}")));
    };
    if let Some(requirements) = response.get_mut("replicaRequirements") {
        canonical("replicaRequirements", requirements);
    }
    let components = response.get_mut("components").and_then(Value::as_array_mut);
    for (index, component) in components.into_iter().flatten().enumerate() {
        if let Some(requirements) = component.get_mut("replicaRequirements") {
            canonical(&format!("components[{index}].replicaRequirements"), requirements);
        }
    }
}

/// Returns the beginning of a webhook's text as one line.
fn excerpt(text: &str) -> String {
    shortened(tidied(text), LONGEST_MESSAGE)
}
