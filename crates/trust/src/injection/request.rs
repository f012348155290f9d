//! The annotations with which targets ask for trust bundles.
//!
//! `windlass.dev/inject-ca-from` asks for all of a target; `windlass.dev/inject-ca-from.<name>` for its webhook of that name, in the
//! place of what is asked for all. The annotations of others count where there is none of these, and we stand in for who answers
//! them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use thiserror::Error;
use windlass_object::{
    ca_injectors::CERT_MANAGER_CONSENT,
    names::{ALLOW_DIRECT_INJECTION, INJECT_API_SERVER_CA, INJECT_CA_FROM, INJECT_CA_FROM_SECRET},
    rfc1123::{is_label, is_subdomain},
};

use super::{kinds::TargetKinds, stand_in::StandIn};

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
        /// How the Secret lets them.
        consent: Consent,
    },
    /// The `ca.crt` in the Secret of a Certificate of cert-manager.
    Certificate {
        /// The namespace of the Certificate.
        namespace: String,
        /// The name of the Certificate.
        name: String,
    },
    /// The CA of the API server.
    ApiServer,
}

/// How a Secret lets targets have its `ca.crt`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Consent {
    /// By the annotation of Windlass.
    #[default]
    Windlass,
    /// By that of cert-manager.
    CertManager,
    /// It need not: Cluster API asks for none.
    NotNeeded,
}

/// Several, whose certificates are united; one, where it is a ServingCertificate.
pub type CaSources = BTreeSet<CaSource>;

/// What a target asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaRequests {
    pub(super) of_all: CaSources,
    pub(super) of_entries: BTreeMap<String, CaSources>,
}

/// Why it is not clear what a target wants.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidRequest {
    /// The value of an annotation names no object.
    #[error("annotation {annotation}: {value:?} must have the form <namespace>/<name>")]
    Form {
        /// The annotation's name.
        annotation: String,
        /// The annotation's value.
        value: String,
    },
    /// The value of an annotation is not `true`.
    #[error("annotation {annotation}: {value:?} must be \"true\"")]
    NotTrue {
        /// The annotation's name.
        annotation: String,
        /// The annotation's value.
        value: String,
    },
    /// The target calls no Service whose CA it could ask for.
    #[error(
        "annotation {annotation}: {webhook} calls no Service: ask with {INJECT_CA_FROM} or {INJECT_CA_FROM_SECRET}"
    )]
    NoService {
        /// The annotation's name.
        annotation: String,
        /// The webhook, or the object.
        webhook: String,
    },
    /// The target asks a ServingCertificate and somebody else for the same place.
    #[error(
        "annotation {INJECT_CA_FROM} excludes {INJECT_CA_FROM_SECRET} and {INJECT_API_SERVER_CA} for the same webhooks: remove one"
    )]
    Both,
}

// === impl CaRequests ===

impl CaRequests {
    /// What `target` asks for. Annotations without a value ask for nothing.
    ///
    /// # Errors
    ///
    /// When the annotations make no sense.
    pub fn of(target: &Value, kinds: &TargetKinds) -> Result<Self, InvalidRequest> {
        if let Some(request) = StandIn::of(target, kinds) {
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

    /// The same of annotations that make no sense as a whole: what can be read, and of who asks a ServingCertificate and somebody
    /// else for the same place, the ServingCertificate. That it gets nothing is said where it is waited for.
    pub fn readable(target: &Value, kinds: &TargetKinds) -> Self {
        if let Some(request) = StandIn::of(target, kinds) {
            return request.read().unwrap_or_default();
        }
        let mut requests = Self::default();
        for annotation in annotations(target) {
            let sources = annotation.read().unwrap_or_default();
            requests.sources_mut(annotation.entry).extend(sources);
        }
        for sources in requests.of_entries.values_mut().chain([&mut requests.of_all]) {
            if sources.iter().any(CaSource::is_certificate) {
                sources.retain(CaSource::is_certificate);
            }
        }
        requests
    }

    /// Whether a target asks for anything, or tries to.
    pub fn are_made(target: &Value, kinds: &TargetKinds) -> bool {
        Self::are_made_of_us(target) || StandIn::of(target, kinds).is_some()
    }

    /// Whether it does by an annotation of Windlass.
    pub(super) fn are_made_of_us(target: &Value) -> bool {
        annotations(target).next().is_some()
    }

    /// What is asked for a webhook, or for an object that has none.
    pub fn of_entry(&self, entry: Option<&str>) -> &CaSources {
        let own = entry.and_then(|entry| self.of_entries.get(entry));
        own.unwrap_or(&self.of_all)
    }

    /// Each set of sources that is asked for somewhere.
    pub fn sets(&self) -> BTreeSet<&CaSources> {
        let sets = self.of_entries.values().chain([&self.of_all]);
        sets.filter(|sources| !sources.is_empty()).collect()
    }

    fn sources_mut(&mut self, entry: Option<&str>) -> &mut CaSources {
        match entry {
            Some(entry) => self.of_entries.entry(entry.to_owned()).or_default(),
            None => &mut self.of_all,
        }
    }
}

// === impl Consent ===

impl Consent {
    /// Each of them.
    pub const ALL: [Self; 3] = [Self::Windlass, Self::CertManager, Self::NotNeeded];

    /// The annotation of the Secret that says `true`, if it must have one.
    pub const fn annotation(self) -> Option<&'static str> {
        match self {
            Self::Windlass => Some(ALLOW_DIRECT_INJECTION),
            Self::CertManager => Some(CERT_MANAGER_CONSENT),
            Self::NotNeeded => None,
        }
    }
}

// === impl CaSource ===

impl CaSource {
    fn is_certificate(&self) -> bool {
        matches!(self, Self::ServingCertificate { .. })
    }
}

/// An annotation that asks for something.
struct RequestAnnotation<'a> {
    /// What is asked for, as the annotation's name begins.
    asked: &'static str,
    /// The webhook that it is asked for.
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

// === impl RequestAnnotation ===

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

/// Reads `<namespace>/<name>`, both of which are names that Kubernetes takes.
///
/// # Errors
///
/// When the value of the annotation is something else.
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
        let read = CaRequests::of(&target, &kinds);
        assert_eq!(
            CaRequests::are_made(&target, &kinds),
            read.as_ref().map_or(true, |read| !read.sets().is_empty())
        );
        if let Ok(read) = &read {
            assert_eq!(CaRequests::readable(&target, &kinds), *read);
        }
        read
    }

    #[test]
    fn targets_ask_for_all_or_for_some_of_their_webhooks() {
        for (annotations, of_all, of_a) in [
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
                *read.of_entry(None),
                CaSources::from_iter(of_all),
                "{annotations}"
            );
            assert_eq!(
                read.of_entry(Some("b.example.com")),
                read.of_entry(None),
                "{annotations}"
            );
            assert_eq!(
                *read.of_entry(Some("a.example.com")),
                CaSources::from_iter(of_a),
                "{annotations}"
            );
        }
    }

    #[test]
    fn what_makes_no_sense_is_named() {
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
    fn a_certificate_is_not_united_with_anything() {
        let annotations = json!({INJECT_CA_FROM: "n/x", INJECT_CA_FROM_SECRET: "n/y"});
        assert_eq!(requests(annotations.clone()), Err(InvalidRequest::Both));
        let target = json!({"metadata": {"annotations": annotations}});
        assert_eq!(
            *CaRequests::readable(&target, &TargetKinds::default()).of_entry(None),
            CaSources::from([certificate("x")])
        );
    }
}
