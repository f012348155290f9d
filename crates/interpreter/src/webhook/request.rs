//! Conversion between questions and requests.

use std::borrow::Cow;

use serde_json::Value;
use thiserror::Error;
use windlass_object::object;

use super::{
    GroupVersionKind, ResourceInterpreterContext, ResourceInterpreterRequest, ResourceInterpreterResponse,
    context::CONTEXT_KIND,
};
use crate::{Operation, Question, customization::KARMADA_API_VERSION};

/// Why a question cannot be sent to a webhook.
#[derive(Debug, Error)]
pub enum WebhookRequestError {
    /// A required field of the object is absent.
    #[error("the object has no {0}")]
    Object(
        /// The name of the field.
        &'static str,
    ),
    /// The number of replicas does not fit into a request.
    #[error("{0} replicas do not fit into 32 bits")]
    Replicas(
        /// The number of replicas.
        i64,
    ),
    /// The request cannot be encoded as JSON.
    #[error("cannot encode the request: {0}")]
    Write(#[from] serde_json::Error),
}

impl<'a> ResourceInterpreterRequest<'a> {
    /// Creates the request for a question, with a unique `uid`.
    ///
    /// # Errors
    ///
    /// When the object has no apiVersion or kind, or the number of replicas does not fit into 32 bits.
    pub fn from_question(
        question: Question<'a>,
        uid: impl Into<String>,
    ) -> Result<Self, WebhookRequestError> {
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

    /// Returns the question of the request.
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

impl<'a> ResourceInterpreterContext<'a> {
    /// Wraps a request.
    pub fn from_request(request: ResourceInterpreterRequest<'a>) -> Self {
        Self {
            request: Some(request),
            ..Self::typed()
        }
    }

    /// Wraps a response.
    pub fn from_response(response: ResourceInterpreterResponse) -> Self {
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
