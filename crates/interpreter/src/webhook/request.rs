//! From a question to a request, and back on the other side.

use std::borrow::Cow;

use serde_json::Value;
use thiserror::Error;
use windlass_object::object;

use super::{
    GroupVersionKind, ResourceInterpreterContext, ResourceInterpreterRequest, ResourceInterpreterResponse,
    context::CONTEXT_KIND,
};
use crate::{Operation, Question, customization::KARMADA_API_VERSION};

/// Why a question cannot be asked of a webhook.
#[derive(Debug, Error)]
pub enum WebhookRequestError {
    /// Nobody knows what it is about.
    #[error("the object has no {0}")]
    Object(
        /// The field that it lacks.
        &'static str,
    ),
    /// What is sent has 32 bits for it.
    #[error("{0} replicas are more than a request can ask for")]
    Replicas(
        /// How many.
        i64,
    ),
    /// It cannot be written as JSON.
    #[error("cannot write the request: {0}")]
    Write(#[from] serde_json::Error),
}

// === impl ResourceInterpreterRequest ===

impl<'a> ResourceInterpreterRequest<'a> {
    /// Asks a question, by a `uid` that no other request has.
    ///
    /// # Errors
    ///
    /// When its object has no apiVersion or kind, or its replicas are none of 32 bits.
    pub fn of(question: Question<'a>, uid: impl Into<String>) -> Result<Self, WebhookRequestError> {
        let object = question.object();
        let text = |pointer| object::text(object, pointer).filter(|text| !text.is_empty());
        let api_version = text("/apiVersion").ok_or(WebhookRequestError::Object("apiVersion"))?;
        let (group, version) = object::group_and_version(api_version);
        let kind = text("/kind").ok_or(WebhookRequestError::Object("kind"))?;
        let mut request = Self {
            uid: uid.into(),
            kind: GroupVersionKind {
                group: group.to_owned(),
                version: version.to_owned(),
                kind: kind.to_owned(),
            },
            name: text("/metadata/name").unwrap_or_default().to_owned(),
            namespace: text("/metadata/namespace").unwrap_or_default().to_owned(),
            operation: question.operation(),
            object: Cow::Borrowed(object),
            observed_object: None,
            desired_replicas: None,
            aggregated_status: Cow::default(),
        };
        match question {
            Question::Retain { observed, .. } => request.observed_object = Some(Cow::Borrowed(observed)),
            Question::ReviseReplica { replicas, .. } => {
                let narrow = i32::try_from(replicas).map_err(|_| WebhookRequestError::Replicas(replicas))?;
                request.desired_replicas = Some(narrow);
            }
            Question::AggregateStatus {
                items: Some(items), ..
            } => {
                request.aggregated_status = Cow::Borrowed(items);
            }
            _ => {}
        }
        Ok(request)
    }

    /// The question that it asks.
    pub fn question(&self) -> Question<'_> {
        let items = Some(&*self.aggregated_status).filter(|items| !items.is_empty());
        Question::new(
            self.operation,
            &self.object,
            self.observed_object.as_deref().unwrap_or(&Value::Null),
            self.desired_replicas.unwrap_or_default().into(),
            items.filter(|_| self.operation == Operation::AggregateStatus),
        )
    }
}

// === impl ResourceInterpreterContext ===

impl<'a> ResourceInterpreterContext<'a> {
    /// What is sent.
    pub fn of_request(request: ResourceInterpreterRequest<'a>) -> Self {
        Self {
            request: Some(request),
            ..Self::typed()
        }
    }

    /// What is answered.
    pub fn of_response(response: ResourceInterpreterResponse) -> Self {
        Self {
            response: Some(response),
            ..Self::typed()
        }
    }

    fn typed() -> Self {
        Self {
            api_version: KARMADA_API_VERSION.to_owned(),
            kind: CONTEXT_KIND.to_owned(),
            request: None,
            response: None,
        }
    }
}
