//! The annotations with which targets ask for a trust bundle.

use serde_json::Value;
use thiserror::Error;
use windlass_object::{
    names::{INJECT_CA_FROM, INJECT_CA_FROM_SECRET},
    object,
    rfc1123::{is_label, is_subdomain},
};

use super::annotation::spoken_annotation;

/// Whose trust bundle a target wants.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CaSource {
    /// A ServingCertificate's.
    ServingCertificate {
        /// The namespace of the ServingCertificate.
        namespace: String,
        /// The name of the ServingCertificate.
        name: String,
    },
    /// The `ca.crt` of a Secret that lets targets do so.
    Secret {
        /// The namespace of the Secret.
        namespace: String,
        /// The name of the Secret.
        name: String,
    },
}

/// Why it is not clear what a target wants.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidRequest {
    /// The value of an annotation names no object.
    #[error("annotation {annotation}: {value:?} must have the form <namespace>/<name>")]
    Form {
        /// The annotation's name.
        annotation: &'static str,
        /// The annotation's value.
        value: String,
    },
    /// The target asks twice.
    #[error("annotations {INJECT_CA_FROM} and {INJECT_CA_FROM_SECRET} are mutually exclusive: remove one")]
    Both,
}

// === impl CaSource ===

impl CaSource {
    /// What `target` asks for; `None` where it asks for nothing.
    ///
    /// # Errors
    ///
    /// When the annotations make no sense.
    pub fn of(target: &Value) -> Result<Option<Self>, InvalidRequest> {
        let from = |annotation| spoken_annotation(target, annotation).map(|value| (annotation, value));
        match (from(INJECT_CA_FROM), from(INJECT_CA_FROM_SECRET)) {
            (None, None) => Ok(None),
            (Some(_), Some(_)) => Err(InvalidRequest::Both),
            (Some((annotation, value)), None) => {
                let (namespace, name) = split(annotation, value)?;
                Ok(Some(Self::ServingCertificate { namespace, name }))
            }
            (None, Some((annotation, value))) => {
                let (namespace, name) = split(annotation, value)?;
                Ok(Some(Self::Secret { namespace, name }))
            }
        }
    }
}

/// Whom a target asks; where it asks twice, the ServingCertificate: that it gets nothing is said where it is waited for.
pub fn asked_source(target: &Value) -> Option<CaSource> {
    match CaSource::of(target) {
        Ok(source) => source,
        Err(InvalidRequest::Both) => {
            let (namespace, name) =
                split(INJECT_CA_FROM, object::annotation(target, INJECT_CA_FROM)?).ok()?;
            Some(CaSource::ServingCertificate { namespace, name })
        }
        Err(InvalidRequest::Form { .. }) => None,
    }
}

/// `<namespace>/<name>`, both of which are names that Kubernetes takes.
fn split(annotation: &'static str, value: &str) -> Result<(String, String), InvalidRequest> {
    match value.split_once('/') {
        Some((namespace, name)) if is_label(namespace) && is_subdomain(name) => {
            Ok((namespace.to_owned(), name.to_owned()))
        }
        _ => Err(InvalidRequest::Form {
            annotation,
            value: value.to_owned(),
        }),
    }
}
