//! The annotations with which targets request trust bundles.
//!
//! `windlass.dev/inject-ca-from` applies to the whole target. `windlass.dev/inject-ca-from.<name>` applies to
//! the webhook of that name instead. Without annotations of Windlass, the annotations of the CA injectors
//! that Windlass replaces apply.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use thiserror::Error;
use windlass_object::{
    ca_injectors::CERT_MANAGER_CONSENT,
    names::{ALLOW_DIRECT_INJECTION, INJECT_API_SERVER_CA, INJECT_CA_FROM, INJECT_CA_FROM_SECRET},
    rfc1123::{is_label, is_subdomain},
};

use super::{foreign_request::ForeignRequest, kinds::TargetKinds};

/// Where the CA certificates that a target requests come from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CaSource {
    /// A ServingCertificate.
    ServingCertificate {
        /// Namespace of the source.
        namespace: String,
        /// Name of the source.
        name: String,
    },
    /// `ca.crt` of a Secret that allows injection.
    Secret {
        /// Namespace of the source.
        namespace: String,
        /// Name of the source.
        name: String,
        /// How the Secret allows it.
        consent: Consent,
    },
    /// `ca.crt` in the Secret of a cert-manager Certificate.
    Certificate {
        /// The namespace of the Certificate.
        namespace: String,
        /// The name of the Certificate.
        name: String,
    },
    /// The CA of the API server.
    ApiServer,
}

/// How a Secret allows the injection of its `ca.crt`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Consent {
    /// By the annotation of Windlass.
    #[default]
    Windlass,
    /// By the annotation of cert-manager.
    CertManager,
    /// Always: Cluster API requires no annotation.
    NotNeeded,
}

/// Several sources, whose certificates are combined, or a single ServingCertificate.
pub type CaSources = BTreeSet<CaSource>;

/// The sources that a target requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaRequests {
    pub(super) for_all: CaSources,
    pub(super) for_webhooks: BTreeMap<String, CaSources>,
}

/// Why the annotations of a target are invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidRequest {
    /// The value does not name an object.
    #[error("annotation {annotation}: {value:?} must have the form <namespace>/<name>")]
    Form {
        /// The name of the annotation.
        annotation: String,
        /// The value of the annotation.
        value: String,
    },
    /// The value is not `true`.
    #[error("annotation {annotation}: {value:?} must be \"true\"")]
    NotTrue {
        /// The name of the annotation.
        annotation: String,
        /// The value of the annotation.
        value: String,
    },
    /// The target calls no Service, so there is no CA to request.
    #[error(
        "annotation {annotation}: {webhook} calls no Service: use {INJECT_CA_FROM} or {INJECT_CA_FROM_SECRET} instead"
    )]
    NoService {
        /// The name of the annotation.
        annotation: String,
        /// The webhook or the object.
        webhook: String,
    },
    /// The target requests a ServingCertificate and another source for the same place.
    #[error(
        "annotation {INJECT_CA_FROM} excludes {INJECT_CA_FROM_SECRET} and {INJECT_API_SERVER_CA} for the same webhooks: remove one"
    )]
    Both,
}

impl CaRequests {
    /// Reads the annotations of `target`. Empty annotations are ignored.
    ///
    /// # Errors
    ///
    /// If the annotations are invalid.
    pub fn from_object(target: &Value, kinds: &TargetKinds) -> Result<Self, InvalidRequest> {
        if let Some(request) = ForeignRequest::from_object(target, kinds) {
            return request.read();
        }
        let mut requests = Self::default();
        for annotation in annotations(target) {
            requests.sources_mut(annotation.entry).extend(annotation.read()?);
        }
        let is_clear =
            |sources: &&CaSources| sources.len() < 2 || !sources.iter().any(CaSource::is_certificate);
        if !requests.sets().iter().all(is_clear) {
            return Err(InvalidRequest::Both);
        }
        Ok(requests)
    }

    /// Reads the valid annotations of `target`. If a place requests a ServingCertificate and another source,
    /// only the ServingCertificate counts; the ServingCertificate then reports the conflict.
    pub fn from_valid_annotations(target: &Value, kinds: &TargetKinds) -> Self {
        if let Some(request) = ForeignRequest::from_object(target, kinds) {
            return request.read().unwrap_or_default();
        }
        let mut requests = Self::default();
        for annotation in annotations(target) {
            let sources = annotation.read().unwrap_or_default();
            requests.sources_mut(annotation.entry).extend(sources);
        }
        for sources in requests.for_webhooks.values_mut().chain([&mut requests.for_all]) {
            if sources.iter().any(CaSource::is_certificate) {
                sources.retain(CaSource::is_certificate);
            }
        }
        requests
    }

    /// Reports whether a target has annotations that request an injection, valid or not.
    pub fn are_present(target: &Value, kinds: &TargetKinds) -> bool {
        Self::has_own_annotations(target) || ForeignRequest::from_object(target, kinds).is_some()
    }

    /// Reports whether a target has such annotations of Windlass.
    pub(super) fn has_own_annotations(target: &Value) -> bool {
        annotations(target).next().is_some()
    }

    /// Returns the sources for a webhook, or for an object without webhooks.
    pub fn for_webhook(&self, entry: Option<&str>) -> &CaSources {
        let own = entry.and_then(|entry| self.for_webhooks.get(entry));
        own.unwrap_or(&self.for_all)
    }

    /// Returns the distinct non-empty sets of sources.
    pub fn sets(&self) -> BTreeSet<&CaSources> {
        let sets = self.for_webhooks.values().chain([&self.for_all]);
        sets.filter(|sources| !sources.is_empty()).collect()
    }

    fn sources_mut(&mut self, entry: Option<&str>) -> &mut CaSources {
        match entry {
            Some(entry) => self.for_webhooks.entry(entry.to_owned()).or_default(),
            None => &mut self.for_all,
        }
    }
}

impl Consent {
    /// All variants.
    pub const ALL: [Self; 3] = [Self::Windlass, Self::CertManager, Self::NotNeeded];

    /// Returns the annotation that the Secret must set to `true`, if one is required.
    pub const fn annotation(self) -> Option<&'static str> {
        match self {
            Self::Windlass => Some(ALLOW_DIRECT_INJECTION),
            Self::CertManager => Some(CERT_MANAGER_CONSENT),
            Self::NotNeeded => None,
        }
    }
}

impl CaSource {
    fn is_certificate(&self) -> bool {
        matches!(self, Self::ServingCertificate { .. })
    }
}

/// An annotation that requests an injection.
struct RequestAnnotation<'a> {
    /// The annotation name without the webhook.
    asked: &'static str,
    /// The webhook that it applies to.
    entry: Option<&'a str>,
    value: &'a str,
}

fn annotations(target: &Value) -> impl Iterator<Item = RequestAnnotation<'_>> {
    let annotations = target.pointer("/metadata/annotations").and_then(Value::as_object);
    annotations.into_iter().flatten().filter_map(|(name, value)| {
        let value = value.as_str().filter(|value| !value.is_empty())?;
        let asks = [INJECT_CA_FROM, INJECT_CA_FROM_SECRET, INJECT_API_SERVER_CA].into_iter();
        let (asked, rest) = asks
            .filter_map(|asked| Some((asked, name.strip_prefix(asked)?)))
            .find(|(_, rest)| rest.is_empty() || rest.starts_with('.'))?;
        let is_made = asked != INJECT_API_SERVER_CA || value != "false";
        is_made.then_some(RequestAnnotation {
            asked,
            entry: rest.strip_prefix('.'),
            value,
        })
    })
}

impl RequestAnnotation<'_> {
    fn read(&self) -> Result<CaSources, InvalidRequest> {
        match self.asked {
            INJECT_API_SERVER_CA if self.value == "true" => Ok(CaSources::from([CaSource::ApiServer])),
            INJECT_API_SERVER_CA => Err(InvalidRequest::NotTrue {
                annotation: self.name(),
                value: self.value.to_owned(),
            }),
            INJECT_CA_FROM_SECRET => self.value.split(',').map(|one| self.secret(one.trim())).collect(),
            _ => {
                let (namespace, name) = self.split(self.value)?;
                Ok(CaSources::from([CaSource::ServingCertificate {
                    namespace,
                    name,
                }]))
            }
        }
    }

    fn secret(&self, value: &str) -> Result<CaSource, InvalidRequest> {
        let (namespace, name) = self.split(value)?;
        Ok(CaSource::Secret {
            namespace,
            name,
            consent: Consent::Windlass,
        })
    }

    fn split(&self, value: &str) -> Result<(String, String), InvalidRequest> {
        namespace_and_name(&self.name(), value)
    }

    fn name(&self) -> String {
        let entry = self.entry.map(|entry| format!(".{entry}"));
        format!("{}{}", self.asked, entry.unwrap_or_default())
    }
}

/// Parses `<namespace>/<name>`, both valid Kubernetes names.
///
/// # Errors
///
/// If the value has another form.
pub(super) fn namespace_and_name(annotation: &str, value: &str) -> Result<(String, String), InvalidRequest> {
    match value.split_once('/') {
        Some((namespace, name)) if is_label(namespace) && is_subdomain(name) => {
            Ok((namespace.to_owned(), name.to_owned()))
        }
        _ => Err(InvalidRequest::Form {
            annotation: annotation.to_owned(),
            value: value.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn secret(name: &str) -> CaSource {
        CaSource::Secret {
            namespace: "n".to_owned(),
            name: name.to_owned(),
            consent: Consent::Windlass,
        }
    }

    fn certificate(name: &str) -> CaSource {
        CaSource::ServingCertificate {
            namespace: "n".to_owned(),
            name: name.to_owned(),
        }
    }

    fn requests(annotations: Value) -> Result<CaRequests, InvalidRequest> {
        let target = json!({"metadata": {"annotations": annotations}});
        let kinds = TargetKinds::default();
        let read = CaRequests::from_object(&target, &kinds);
        assert_eq!(
            CaRequests::are_present(&target, &kinds),
            read.as_ref().map_or(true, |read| !read.sets().is_empty())
        );
        if let Ok(read) = &read {
            assert_eq!(CaRequests::from_valid_annotations(&target, &kinds), *read);
        }
        read
    }

    #[test]
    fn annotations_apply_to_all_webhooks_or_to_one() {
        for (annotations, for_all, of_a) in [
            (Value::Null, vec![], vec![]),
            (
                json!({"a": "b", "windlass.dev/inject-ca-fromage": "n/x"}),
                vec![],
                vec![],
            ),
            (json!({INJECT_CA_FROM: ""}), vec![], vec![]),
            (
                json!({INJECT_CA_FROM: "n/x"}),
                vec![certificate("x")],
                vec![certificate("x")],
            ),
            (
                json!({INJECT_CA_FROM_SECRET: "n/x, n/y", INJECT_API_SERVER_CA: "true"}),
                vec![secret("x"), secret("y"), CaSource::ApiServer],
                vec![secret("x"), secret("y"), CaSource::ApiServer],
            ),
            (json!({INJECT_API_SERVER_CA: "false"}), vec![], vec![]),
            (
                json!({INJECT_CA_FROM: "n/x", "windlass.dev/inject-ca-from.a.example.com": "n/y"}),
                vec![certificate("x")],
                vec![certificate("y")],
            ),
            (
                json!({INJECT_CA_FROM: "n/x", "windlass.dev/inject-ca-from-secret.a.example.com": "n/y"}),
                vec![certificate("x")],
                vec![secret("y")],
            ),
        ] {
            let read = requests(annotations.clone()).unwrap();
            assert_eq!(
                *read.for_webhook(None),
                CaSources::from_iter(for_all),
                "{annotations}"
            );
            assert_eq!(
                read.for_webhook(Some("b.example.com")),
                read.for_webhook(None),
                "{annotations}"
            );
            assert_eq!(
                *read.for_webhook(Some("a.example.com")),
                CaSources::from_iter(of_a),
                "{annotations}"
            );
        }
    }

    #[test]
    fn invalid_annotations_are_reported() {
        for wrong in ["hook", "/hook", "system/", "a/b/c", "a /b", "A/b"] {
            assert_eq!(
                requests(json!({INJECT_CA_FROM: wrong})).unwrap_err().to_string(),
                format!("annotation {INJECT_CA_FROM}: {wrong:?} must have the form <namespace>/<name>")
            );
        }
        let of_entry = requests(json!({"windlass.dev/inject-ca-from-secret.a": "n/x,y"})).unwrap_err();
        assert_eq!(
            of_entry.to_string(),
            "annotation windlass.dev/inject-ca-from-secret.a: \"y\" must have the form <namespace>/<name>"
        );
        let untrue = requests(json!({INJECT_API_SERVER_CA: "yes"})).unwrap_err();
        assert!(untrue.to_string().contains("must be \"true\""), "{untrue}");
    }

    #[test]
    fn a_serving_certificate_excludes_other_sources() {
        let annotations = json!({INJECT_CA_FROM: "n/x", INJECT_CA_FROM_SECRET: "n/y"});
        assert_eq!(requests(annotations.clone()), Err(InvalidRequest::Both));
        let target = json!({"metadata": {"annotations": annotations}});
        assert_eq!(
            *CaRequests::from_valid_annotations(&target, &TargetKinds::default()).for_webhook(None),
            CaSources::from([certificate("x")])
        );
    }
}
