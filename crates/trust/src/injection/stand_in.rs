//! What targets ask other CA injectors for, where Windlass stands in for these.

use std::collections::BTreeMap;

use serde_json::Value;
use windlass_object::{
    ObjectKey,
    ca_injectors::{
        CERT_MANAGER_API_SERVER, CERT_MANAGER_CERTIFICATE, CERT_MANAGER_SECRET, CLUSTER_API_SECRET,
    },
    object,
};

use super::{
    holder::{CalledServer, Holder},
    kinds::TargetKinds,
    request::{CaRequests, CaSource, CaSources, Consent, InvalidRequest, namespace_and_name},
};

/// What a target asks another injector for.
pub(super) struct StandIn<'a> {
    target: &'a Value,
    kinds: &'a TargetKinds,
    annotation: &'static str,
    value: &'a str,
}

// === impl StandIn ===

impl<'a> StandIn<'a> {
    /// What `target` asks an injector for whose annotations are answered; `None` where it asks none, or Windlass itself. Not for a
    /// ConfigMap: there service-ca gives the one CA that all Services have.
    pub(super) fn of(target: &'a Value, kinds: &'a TargetKinds) -> Option<Self> {
        if kinds.answered().is_empty() || CaRequests::are_made_of_us(target) {
            return None;
        }
        let _ = kinds.of(target).filter(|kind| !kind.is_common())?;
        let mut answered = kinds.answered().iter();
        let annotation = answered.find_map(|injector| injector.asked_by(target))?;
        Some(Self {
            target,
            kinds,
            annotation,
            value: object::annotation(target, annotation)?,
        })
    }

    /// The same as a request to Windlass.
    ///
    /// # Errors
    ///
    /// When the annotation makes no sense.
    pub(super) fn read(&self) -> Result<CaRequests, InvalidRequest> {
        let of_all = |source| CaRequests {
            of_all: CaSources::from([source]),
            of_entries: BTreeMap::new(),
        };
        let object = || namespace_and_name(self.annotation, self.value);
        let secret = |consent| {
            let (namespace, name) = object()?;
            Ok(of_all(CaSource::Secret {
                namespace,
                name,
                consent,
            }))
        };
        match self.annotation {
            CERT_MANAGER_SECRET => secret(Consent::CertManager),
            CLUSTER_API_SECRET => secret(Consent::NotNeeded),
            CERT_MANAGER_CERTIFICATE => {
                let (namespace, name) = object()?;
                Ok(of_all(CaSource::Certificate { namespace, name }))
            }
            _ if self.value != "true" => Err(InvalidRequest::NotTrue {
                annotation: self.annotation.to_owned(),
                value: self.value.to_owned(),
            }),
            CERT_MANAGER_API_SERVER => Ok(of_all(CaSource::ApiServer)),
            _ => self.called_services(),
        }
    }

    /// For each place the CA of the Service that is called: the ServingCertificate of a Service that asks for one has its name.
    fn called_services(&self) -> Result<CaRequests, InvalidRequest> {
        let kind = self.kinds.of(self.target);
        let mut requests = CaRequests::default();
        for holder in kind.map(|kind| kind.holders(self.target)).unwrap_or_default() {
            let source = called_service(&holder).ok_or_else(|| self.no_service(&holder))?;
            let sources = match holder.entry {
                Some(entry) => requests.of_entries.entry(entry.to_owned()).or_default(),
                None => &mut requests.of_all,
            };
            sources.insert(source);
        }
        Ok(requests)
    }

    fn no_service(&self, holder: &Holder<'_>) -> InvalidRequest {
        let webhook = holder.entry.map(|entry| format!("webhook {entry}"));
        let key = || ObjectKey::of(self.target).map(|key| key.to_string());
        InvalidRequest::NoService {
            annotation: self.annotation.to_owned(),
            webhook: webhook.or_else(key).unwrap_or_default(),
        }
    }
}

fn called_service(holder: &Holder<'_>) -> Option<CaSource> {
    let CalledServer::Host(host) = &holder.server else {
        return None;
    };
    let mut labels = host.split('.');
    let (name, namespace) = (labels.next()?, labels.next()?);
    (labels.next() == Some("svc")).then(|| CaSource::ServingCertificate {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use windlass_object::{
        ca_injectors::{CaInjector, SERVICE_CA},
        names::INJECT_CA_FROM,
    };

    use super::*;

    fn config(annotations: &Value) -> Value {
        let hook = |name: &str, service: &str| json!({"name": name, "clientConfig": {"service": {"namespace": "n", "name": service}}});
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "w", "annotations": annotations},
            "webhooks": [hook("a.example.com", "a"), hook("b.example.com", "b")],
        })
    }

    fn answering(injectors: &[CaInjector]) -> TargetKinds {
        TargetKinds::default().answering(injectors.iter().copied().collect())
    }

    fn secret(consent: Consent) -> CaSource {
        CaSource::Secret {
            namespace: "n".to_owned(),
            name: "x".to_owned(),
            consent,
        }
    }

    fn serving_certificate(name: &str) -> CaSource {
        CaSource::ServingCertificate {
            namespace: "n".to_owned(),
            name: name.to_owned(),
        }
    }

    #[test]
    fn annotations_of_others_are_answered_where_we_stand_in_for_these() {
        let of_certificate = CaSource::Certificate {
            namespace: "n".to_owned(),
            name: "x".to_owned(),
        };
        let cert_manager = [CaInjector::CertManager];
        for (annotations, expected) in [
            (json!({CERT_MANAGER_CERTIFICATE: "n/x"}), Some(of_certificate)),
            (
                json!({CERT_MANAGER_SECRET: "n/x"}),
                Some(secret(Consent::CertManager)),
            ),
            (
                json!({CERT_MANAGER_SECRET: "n/x", CERT_MANAGER_CERTIFICATE: "n/y", CERT_MANAGER_API_SERVER: "true"}),
                Some(secret(Consent::CertManager)),
            ),
            (
                json!({CERT_MANAGER_API_SERVER: "true"}),
                Some(CaSource::ApiServer),
            ),
            (json!({CERT_MANAGER_API_SERVER: "false"}), None),
            (json!({CLUSTER_API_SECRET: "n/x"}), None),
            (
                json!({CERT_MANAGER_SECRET: "n/x", INJECT_CA_FROM: "n/y"}),
                Some(serving_certificate("y")),
            ),
        ] {
            let target = config(&annotations);
            let kinds = answering(&cert_manager);
            let requests = CaRequests::of(&target, &kinds).unwrap();
            let expected = CaSources::from_iter(expected);
            assert_eq!(
                *requests.of_entry(Some("a.example.com")),
                expected,
                "{annotations}"
            );
            assert_eq!(CaRequests::readable(&target, &kinds), requests);
            assert_eq!(CaRequests::are_made(&target, &kinds), !expected.is_empty());
            let unanswered = CaRequests::of(&target, &TargetKinds::default()).unwrap();
            assert_eq!(
                unanswered.sets().is_empty(),
                !CaRequests::are_made_of_us(&target),
                "{annotations}"
            );
        }
    }

    #[test]
    fn each_injector_is_asked_by_objects_of_its_own_groups() {
        let extension = json!({
            "apiVersion": "runtime.cluster.x-k8s.io/v1beta2", "kind": "ExtensionConfig",
            "metadata": {"name": "e", "annotations": {CLUSTER_API_SECRET: "n/x", CERT_MANAGER_SECRET: "n/y"}},
        });
        let requests = CaRequests::of(&extension, &answering(&CaInjector::ALL)).unwrap();
        assert_eq!(
            *requests.of_entry(None),
            CaSources::from([secret(Consent::NotNeeded)])
        );
        let config_map = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"namespace": "n", "name": "c", "annotations": {SERVICE_CA[0]: "true"}},
        });
        assert!(!CaRequests::are_made(&config_map, &answering(&CaInjector::ALL)));
    }

    #[test]
    fn each_webhook_gets_the_ca_of_the_service_that_it_calls() {
        let kinds = answering(&[CaInjector::ServiceCa]);
        for annotation in SERVICE_CA {
            let requests = CaRequests::of(&config(&json!({annotation: "true"})), &kinds).unwrap();
            for (entry, service) in [("a.example.com", "a"), ("b.example.com", "b")] {
                let expected = CaSources::from([serving_certificate(service)]);
                assert_eq!(*requests.of_entry(Some(entry)), expected);
            }
        }
        let mut elsewhere = config(&json!({SERVICE_CA[0]: "true"}));
        elsewhere["webhooks"][1]["clientConfig"] = json!({"url": "https://example.com/"});
        let error = CaRequests::of(&elsewhere, &kinds).unwrap_err().to_string();
        assert!(
            error.contains("webhook b.example.com calls no Service"),
            "{error}"
        );
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let kinds = answering(&CaInjector::ALL);
        for (annotation, value) in [
            (CERT_MANAGER_CERTIFICATE, "x"),
            (CERT_MANAGER_SECRET, "n/x/y"),
            (CERT_MANAGER_API_SERVER, "yes"),
            (SERVICE_CA[1], "yes"),
        ] {
            let target = config(&json!({annotation: value}));
            let error = CaRequests::of(&target, &kinds).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("annotation {annotation}: {value:?} ")),
                "{error}"
            );
            assert!(CaRequests::are_made(&target, &kinds));
        }
    }
}
