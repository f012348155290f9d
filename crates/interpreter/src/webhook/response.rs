//! From a response to an answer, and back on the other side.

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
    patch::patched,
};
use crate::{
    Answer, Question,
    answer::{DependentObjectReference, canonicalize_quantities},
    customization::KARMADA_API_VERSION,
    error::OtherAnswerError,
};

/// Why what a webhook says is not an answer.
#[derive(Debug, Error)]
pub enum WebhookAnswerError {
    /// It cannot be read.
    #[error("cannot read what it says: {0}")]
    Decode(#[from] DecodeError),
    /// It is something else.
    #[error("it says a {kind:?} of {api_version:?}, not a {CONTEXT_KIND} of {KARMADA_API_VERSION}")]
    OtherType {
        /// Its apiVersion.
        api_version: String,
        /// Its kind.
        kind: String,
    },
    /// A field that the operation needs is not there.
    #[error("{0}: is missing")]
    Missing(
        /// The field.
        &'static str,
    ),
    /// It answers another request.
    #[error("response.uid: must be {expected:?}, as in the request, not {found:?}")]
    OtherUid {
        /// That of the request.
        expected: String,
        /// What it is.
        found: String,
    },
    /// It says that it failed.
    #[error("the webhook failed with status {code}: {message}")]
    Failure {
        /// As of HTTP.
        code: i32,
        /// What it says.
        message: String,
    },
    /// The patch is of another type.
    #[error("response.patchType: must be {JSON_PATCH}, not {0:?}")]
    OtherPatchType(
        /// What it is.
        String,
    ),
    /// The patch does not lead to an object.
    #[error("response.patch: {0}")]
    Patch(#[from] PatchObjectError),
    /// A field is not as it must be.
    #[error("response.{}", .0.join("; response."))]
    Fields(
        /// All that is wrong, each with its field.
        Vec<String>,
    ),
}

/// How much of what a webhook says is repeated, in characters.
const LONGEST_MESSAGE: usize = 512;

// === impl WebhookAnswerError ===

impl WebhookAnswerError {
    /// Whether the answer was lost on its way or is none at all: all that `failurePolicy: Ignore` is about. That a webhook says that it
    /// failed, or patches what is not there, is never ignored.
    pub fn is_ignorable(&self) -> bool {
        !matches!(self, Self::Failure { .. } | Self::Patch(_))
    }
}

// === impl Answer ===

impl Answer {
    /// Reads what a webhook says to the request `uid`, which asked `question`.
    ///
    /// # Errors
    ///
    /// When that is no answer, or it says that it has none.
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
                found: said(&response.uid),
            });
        }
        if !response.successful {
            let status = response
                .status
                .ok_or(WebhookAnswerError::Missing("response.status"))?;
            return Err(WebhookAnswerError::Failure {
                code: status.code,
                message: said(&status.message),
            });
        }
        if !wrong.is_empty() {
            return Err(WebhookAnswerError::Fields(wrong));
        }
        response.answer(question)
    }
}

// === impl ResourceInterpreterContext ===

impl ResourceInterpreterContext<'_> {
    /// Whether it is what it should be, as far as it says.
    pub(super) fn check_type(&self) -> Result<(), WebhookAnswerError> {
        let is_one_of = |found: &str, expected| found.is_empty() || found == expected;
        if is_one_of(&self.api_version, KARMADA_API_VERSION) && is_one_of(&self.kind, CONTEXT_KIND) {
            return Ok(());
        }
        Err(WebhookAnswerError::OtherType {
            api_version: said(&self.api_version),
            kind: said(&self.kind),
        })
    }
}

// === impl ResourceInterpreterResponse ===

impl ResourceInterpreterResponse {
    /// Says an answer to a request. An object is said as a patch of the one that was sent, if it differs.
    ///
    /// # Errors
    ///
    /// When it is the answer to another operation.
    pub fn of(request: &ResourceInterpreterRequest<'_>, answer: Answer) -> Result<Self, OtherAnswerError> {
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
                // Nothing would be taken for a field that was forgotten.
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

    /// Says why there is no answer.
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

    /// The answer to a question, where it says that it has one.
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
                Ok(Answer::Object(patched(object, patch)?))
            }
            (_, Some(patch_type)) => Err(WebhookAnswerError::OtherPatchType(said(&patch_type))),
        }
    }
}

/// Dependencies that all name something.
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

/// Writes the amounts of all `replicaRequirements` in their canonical form.
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

/// The beginning of what a webhook says, on one line.
fn said(text: &str) -> String {
    shortened(tidied(text), LONGEST_MESSAGE)
}
