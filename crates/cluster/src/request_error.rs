//! Why a request failed. Errors name the object, and never its content.

use std::{sync::Arc, time::Duration};

use kube::core::Status;
use thiserror::Error;

use crate::{kind::Kind, lease::NotLeading};

/// Why a request failed.
#[derive(Debug, Error)]
pub enum RequestError {
    /// The API server refused it.
    #[error("{operation} {object}: {}", .status.message)]
    Refused {
        /// What was tried, for example `apply`.
        operation: &'static str,
        /// On which object.
        object: String,
        /// What the API server answered.
        status: Box<Status>,
    },
    /// There was no answer in time.
    #[error("{operation} {object}: no answer from the API server within {}s", .after.as_secs_f32())]
    Timeout {
        /// What was tried.
        operation: &'static str,
        /// On which object.
        object: String,
        /// How long the answer was waited for.
        after: Duration,
    },
    /// The API server could not be spoken to.
    #[error("{operation} {object}: cannot reach the API server")]
    Transport {
        /// What was tried.
        operation: &'static str,
        /// On which object.
        object: String,
        /// What went wrong.
        #[source]
        source: Box<kube::Error>,
    },
    /// There is no connection to the remote cluster now.
    #[error("{operation} {object}: no connection to the remote cluster: {problem}")]
    Disconnected {
        /// What was tried.
        operation: &'static str,
        /// On which object.
        object: String,
        /// Why.
        problem: Arc<str>,
    },
    /// It was not sent, because this process does not lead now.
    #[error("{operation} {object}")]
    NotLeading {
        /// What was to be done.
        operation: &'static str,
        /// To which object.
        object: String,
        /// Why it was held back.
        #[source]
        source: NotLeading,
    },
    /// The API server does not serve the kind.
    #[error("the cluster does not serve {kind}: is its CustomResourceDefinition installed?")]
    UnknownKind {
        /// The kind.
        kind: Kind,
    },
    /// The API server names no user.
    #[error("cannot determine the operator's own user name (SelfSubjectReview)")]
    Nobody,
    /// No object can have this name or namespace: in a path it would name another.
    #[error("{object}: names cannot be . or .. or contain any of / % ? #")]
    Unaddressable {
        /// The object.
        object: String,
    },
    /// The object lacks an apiVersion, a kind or a name.
    #[error("an object without apiVersion, kind or metadata.name cannot be sent")]
    Nameless,
}

// === impl RequestError ===

impl RequestError {
    fn status_code(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(status.code),
            _ => None,
        }
    }

    /// The object is not there.
    pub fn is_not_found(&self) -> bool {
        self.status_code() == Some(404)
    }

    /// The API server has no object of this name. Unlike [`RequestError::is_not_found`], not where it does not serve the
    /// kind (any more): then its objects may well be there.
    pub fn is_missing(&self, name: &str) -> bool {
        let Self::Refused { status, .. } = self else {
            return false;
        };
        let details = status.details.as_ref();
        status.code == 404 && details.is_some_and(|details| details.name == name)
    }

    /// Another write came first, or another manager owns a field.
    pub fn is_conflict(&self) -> bool {
        self.status_code() == Some(409)
    }

    /// A page of a list can no longer be had; where the list may go on instead, if the API server says so.
    pub fn expired_page(&self) -> Option<Option<&str>> {
        match self {
            Self::Refused { status, .. } if status.code == 410 => {
                let metadata = status.metadata.as_ref();
                Some(metadata.and_then(|metadata| metadata.continue_.as_deref()))
            }
            _ => None,
        }
    }

    /// The API server, or a webhook, does not want this write: it is of no use to send it again as it is.
    pub fn is_rejection(&self) -> bool {
        let refuses = |code| (400..500).contains(&code) && code != 429;
        matches!(self, Self::Unaddressable { .. }) || self.status_code().is_some_and(refuses)
    }

    /// The object or the patch is not valid; also the answer to a JSON patch whose `test` failed.
    pub fn is_invalid(&self) -> bool {
        self.status_code() == Some(422)
    }

    /// A field would change that never may.
    pub fn is_immutable(&self) -> bool {
        let Self::Refused { status, .. } = self else {
            return false;
        };
        // The words of `apimachinery/pkg/api/validation` (`FieldImmutableErrorMsg`), of RBAC and of PriorityClasses.
        let words = [
            "field is immutable",
            "cannot change roleRef",
            "may not be changed in an update",
        ];
        status.code == 422 && words.iter().any(|word| status.message.contains(word))
    }

    /// An admission webhook could not be called, or did not answer as one.
    pub fn is_failed_webhook(&self) -> bool {
        let Self::Refused { status, .. } = self else {
            return false;
        };
        // `ErrCallingWebhook` of kube-apiserver.
        status.message.contains("failed calling webhook ")
    }

    /// An admission webhook, or a policy, has looked at it and says no.
    pub fn is_denied_by_webhook(&self) -> bool {
        let Self::Refused { status, .. } = self else {
            return false;
        };
        // `webhookerrors.ToStatusErr` of kube-apiserver.
        status.message.contains("admission webhook ") && status.message.contains(" denied the request")
    }

    /// An admission webhook cannot be asked in a dry run: it may have side effects.
    pub fn is_dry_run_unsupported(&self) -> bool {
        let Self::Refused { status, .. } = self else {
            return false;
        };
        // `webhookerrors.NewDryRunUnsupportedErr` of kube-apiserver.
        status.code == 400 && status.message.contains("does not support dry run")
    }

    /// Nothing is created in a namespace that is being deleted.
    pub fn is_namespace_terminating(&self) -> bool {
        let Self::Refused { status, .. } = self else {
            return false;
        };
        // `NamespaceLifecycle` of kube-apiserver.
        status.code == 403 && status.message.contains("because it is being terminated")
    }

    /// The API server did not take the request for a reason of its own, or of a webhook that did not answer it.
    pub fn is_inconclusive(&self) -> bool {
        self.status_code().is_some_and(|code| code == 429 || code >= 500)
    }

    /// Windlass may not do this.
    pub fn is_forbidden(&self) -> bool {
        self.status_code() == Some(403)
    }

    /// How long the API server wants to be left alone with this.
    pub fn retry_after(&self) -> Option<Duration> {
        let Self::Refused { status, .. } = self else {
            return None;
        };
        let seconds = status.details.as_ref()?.retry_after_seconds;
        (seconds > 0).then(|| Duration::from_secs(seconds.into()))
    }
}
