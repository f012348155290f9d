//! Errors of requests. They name the object, and never contain its content.

use std::{sync::Arc, time::Duration};

use kube::core::Status;
use thiserror::Error;

use crate::{kind::Kind, lease::NotLeading};

/// Why a request failed.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the message explains each field")]
pub enum RequestError {
    /// The API server rejected the request.
    #[error("{operation} {object}: {}", .status.message)]
    Refused {
        /// The operation, for example `apply`.
        operation: &'static str,
        object: String,
        /// The status in the response.
        status: Box<Status>,
    },
    /// The request timed out.
    #[error("{operation} {object}: no answer from the API server within {}s", .after.as_secs_f32())]
    Timeout {
        operation: &'static str,
        object: String,
        after: Duration,
    },
    /// The API server could not be reached.
    #[error("{operation} {object}: cannot reach the API server")]
    Transport {
        operation: &'static str,
        object: String,
        #[source]
        source: Box<kube::Error>,
    },
    /// There is no connection to the remote cluster.
    #[error("{operation} {object}: no connection to the remote cluster: {problem}")]
    Disconnected {
        operation: &'static str,
        object: String,
        problem: Arc<str>,
    },
    /// The request was not sent, because this process does not lead.
    #[error("{operation} {object}")]
    NotLeading {
        operation: &'static str,
        object: String,
        #[source]
        source: NotLeading,
    },
    /// The API server does not serve the kind.
    #[error("the cluster does not serve {kind}: is its CustomResourceDefinition installed?")]
    UnknownKind { kind: Kind },
    /// The response has no user name.
    #[error("cannot determine the operator's own user name (SelfSubjectReview)")]
    NoUserName,
    /// The name or namespace is invalid: in a path it would refer to another object.
    #[error("{object}: names cannot be . or .. or contain any of / % ? #")]
    Unaddressable { object: String },
    /// The object lacks an apiVersion, a kind or a name.
    #[error("an object without apiVersion, kind or metadata.name cannot be sent")]
    Nameless,
}

impl RequestError {
    fn status_code(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(status.code),
            _ => None,
        }
    }

    /// Reports whether the object does not exist.
    pub fn is_not_found(&self) -> bool {
        self.status_code() == Some(404)
    }

    /// Reports whether the API server has no object of this name. Unlike [`RequestError::is_not_found`], it
    /// is false if the kind is not served (any longer): its objects may still exist then.
    pub fn is_missing(&self, name: &str) -> bool {
        let Self::Refused { status, .. } = self else {
            return false;
        };
        let details = status.details.as_ref();
        status.code == 404 && details.is_some_and(|details| details.name == name)
    }

    /// Reports a conflict with another write, or with another owner of a field.
    pub fn is_conflict(&self) -> bool {
        self.status_code() == Some(409)
    }

    /// Reports an expired continue token, with the token to continue from, if the API server offers one.
    pub fn expired_page(&self) -> Option<Option<&str>> {
        match self {
            Self::Refused { status, .. } if status.code == 410 => {
                let metadata = status.metadata.as_ref();
                Some(metadata.and_then(|metadata| metadata.continue_.as_deref()))
            }
            _ => None,
        }
    }

    /// Reports whether the API server or a webhook rejected the write, so that a retry is useless.
    pub fn is_rejection(&self) -> bool {
        let refuses = |code| (400..500).contains(&code) && code != 429;
        matches!(self, Self::Unaddressable { .. }) || self.status_code().is_some_and(refuses)
    }

    /// Reports whether the object or the patch is invalid; also for a JSON patch whose `test` failed.
    pub fn is_invalid(&self) -> bool {
        self.status_code() == Some(422)
    }

    /// Reports whether the write would change an immutable field.
    pub fn is_immutable(&self) -> bool {
        let Self::Refused { status, .. } = self else {
            return false;
        };
        // Messages of `apimachinery/pkg/api/validation` (`FieldImmutableErrorMsg`), of RBAC and of
        // PriorityClasses.
        let words = [
            "field is immutable",
            "cannot change roleRef",
            "may not be changed in an update",
        ];
        status.code == 422 && words.iter().any(|word| status.message.contains(word))
    }

    /// Reports whether an admission webhook could not be called, or gave an invalid response.
    pub fn is_failed_webhook(&self) -> bool {
        let Self::Refused { status, .. } = self else {
            return false;
        };
        // `ErrCallingWebhook` of kube-apiserver.
        status.message.contains("failed calling webhook ")
    }

    /// Reports whether an admission webhook or a policy denied the request.
    pub fn is_denied_by_webhook(&self) -> bool {
        let Self::Refused { status, .. } = self else {
            return false;
        };
        // `webhookerrors.ToStatusErr` of kube-apiserver.
        status.message.contains("admission webhook ") && status.message.contains(" denied the request")
    }

    /// Reports whether an admission webhook does not support dry runs: it may have side effects.
    pub fn is_dry_run_unsupported(&self) -> bool {
        let Self::Refused { status, .. } = self else {
            return false;
        };
        // `webhookerrors.NewDryRunUnsupportedErr` of kube-apiserver.
        status.code == 400 && status.message.contains("does not support dry run")
    }

    /// Reports whether the namespace is being deleted.
    pub fn is_namespace_terminating(&self) -> bool {
        let Self::Refused { status, .. } = self else {
            return false;
        };
        // `NamespaceLifecycle` of kube-apiserver.
        status.code == 403 && status.message.contains("because it is being terminated")
    }

    /// Reports whether the request failed for a reason of the API server, or because a webhook did not
    /// respond.
    pub fn is_inconclusive(&self) -> bool {
        self.status_code().is_some_and(|code| code == 429 || code >= 500)
    }

    /// Reports whether Windlass lacks a permission.
    pub fn is_forbidden(&self) -> bool {
        self.status_code() == Some(403)
    }

    /// Returns the delay before a retry that the API server requests.
    pub fn retry_after(&self) -> Option<Duration> {
        let Self::Refused { status, .. } = self else {
            return None;
        };
        let seconds = status.details.as_ref()?.retry_after_seconds;
        (seconds > 0).then(|| Duration::from_secs(seconds.into()))
    }
}
