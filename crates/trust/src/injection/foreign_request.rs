//! Requests of targets to other CA injectors that Windlass replaces.

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

/// The request of a target to another CA injector.
pub(super) struct ForeignRequest<'a> {
    target: &'a Value,
    kinds: &'a TargetKinds,
    annotation: &'static str,
    value: &'a str,
}

impl<'a> ForeignRequest<'a> {
    /// Returns the request of `target` to a replaced CA injector; `None` if it has none, or an annotation of
    /// Windlass. Ignores ConfigMaps: service-ca writes the one CA of all Services to these.
    pub(super) fn from_object(target: &'a Value, kinds: &'a TargetKinds) -> Option<Self> {
        if kinds.replaced_injectors().is_empty() || CaRequests::has_own_annotations(target) {
            return None;
        }
        let _ = kinds.kind_of(target).filter(|kind| !kind.is_common())?;
        let mut answered = kinds.replaced_injectors().iter();
        let annotation = answered.find_map(|injector| injector.annotation_on(target))?;
        Some(Self {
            target,
            kinds,
            annotation,
            value: object::annotation(target, annotation)?,
        })
    }

    /// Converts it into requests to Windlass.
    ///
    /// # Errors
    ///
    /// If the annotation is invalid.
    pub(super) fn read(&self) -> Result<CaRequests, InvalidRequest> {
        let for_all = |source| CaRequests {
            for_all: CaSources::from([source]),
            for_webhooks: BTreeMap::new(),
        };
        let object = || namespace_and_name(self.annotation, self.value);
        let secret = |consent| {
            let (namespace, name) = object()?;
            Ok(for_all(CaSource::Secret {
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
                Ok(for_all(CaSource::Certificate { namespace, name }))
            }
            _ if self.value != "true" => Err(InvalidRequest::NotTrue {
                annotation: self.annotation.to_owned(),
                value: self.value.to_owned(),
            }),
            CERT_MANAGER_API_SERVER => Ok(for_all(CaSource::ApiServer)),
            _ => self.called_services(),
        }
    }

    /// Requests, for each place, the CA of the called Service. The ServingCertificate of an annotated Service
    /// has the Service's name.
    fn called_services(&self) -> Result<CaRequests, InvalidRequest> {
        let kind = self.kinds.kind_of(self.target);
        let mut requests = CaRequests::default();
        for holder in kind.map(|kind| kind.holders(self.target)).unwrap_or_default() {
            let source = called_service(&holder).ok_or_else(|| self.no_service(&holder))?;
            let sources = match holder.entry {
                Some(entry) => requests.for_webhooks.entry(entry.to_owned()).or_default(),
                None => &mut requests.for_all,
            };
            sources.insert(source);
        }
        Ok(requests)
    }

    fn no_service(&self, holder: &Holder<'_>) -> InvalidRequest {
        let webhook = holder.entry.map(|entry| format!("webhook {entry}"));
        let key = || ObjectKey::from_object(self.target).map(|key| key.to_string());
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

    fn kinds_with_replaced(injectors: &[CaInjector]) -> TargetKinds {
        TargetKinds::default().with_replaced_injectors(injectors.iter().copied().collect())
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
    fn foreign_annotations_are_honored_for_replaced_injectors() {
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
            let kinds = kinds_with_replaced(&cert_manager);
            let requests = CaRequests::from_object(&target, &kinds).unwrap();
            let expected = CaSources::from_iter(expected);
            assert_eq!(
                *requests.for_webhook(Some("a.example.com")),
                expected,
                "{annotations}"
            );
            assert_eq!(CaRequests::from_valid_annotations(&target, &kinds), requests);
            assert_eq!(CaRequests::are_present(&target, &kinds), !expected.is_empty());
            let unanswered = CaRequests::from_object(&target, &TargetKinds::default()).unwrap();
            assert_eq!(
                unanswered.sets().is_empty(),
                !CaRequests::has_own_annotations(&target),
                "{annotations}"
            );
        }
    }

    #[test]
    fn each_injector_handles_only_its_own_groups() {
        let extension = json!({
            "apiVersion": "runtime.cluster.x-k8s.io/v1beta2", "kind": "ExtensionConfig",
            "metadata": {"name": "e", "annotations": {CLUSTER_API_SECRET: "n/x", CERT_MANAGER_SECRET: "n/y"}},
        });
        let requests = CaRequests::from_object(&extension, &kinds_with_replaced(&CaInjector::ALL)).unwrap();
        assert_eq!(
            *requests.for_webhook(None),
            CaSources::from([secret(Consent::NotNeeded)])
        );
        let config_map = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"namespace": "n", "name": "c", "annotations": {SERVICE_CA[0]: "true"}},
        });
        assert!(!CaRequests::are_present(
            &config_map,
            &kinds_with_replaced(&CaInjector::ALL)
        ));
    }

    #[test]
    fn each_webhook_gets_the_ca_of_its_service() {
        let kinds = kinds_with_replaced(&[CaInjector::ServiceCa]);
        for annotation in SERVICE_CA {
            let requests = CaRequests::from_object(&config(&json!({annotation: "true"})), &kinds).unwrap();
            for (entry, service) in [("a.example.com", "a"), ("b.example.com", "b")] {
                let expected = CaSources::from([serving_certificate(service)]);
                assert_eq!(*requests.for_webhook(Some(entry)), expected);
            }
        }
        let mut elsewhere = config(&json!({SERVICE_CA[0]: "true"}));
        elsewhere["webhooks"][1]["clientConfig"] = json!({"url": "https://example.com/"});
        let error = CaRequests::from_object(&elsewhere, &kinds)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("webhook b.example.com calls no Service"),
            "{error}"
        );
    }

    #[test]
    fn invalid_annotations_are_reported() {
        let kinds = kinds_with_replaced(&CaInjector::ALL);
        for (annotation, value) in [
            (CERT_MANAGER_CERTIFICATE, "x"),
            (CERT_MANAGER_SECRET, "n/x/y"),
            (CERT_MANAGER_API_SERVER, "yes"),
            (SERVICE_CA[1], "yes"),
        ] {
            let target = config(&json!({annotation: value}));
            let error = CaRequests::from_object(&target, &kinds).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("annotation {annotation}: {value:?} ")),
                "{error}"
            );
            assert!(CaRequests::are_present(&target, &kinds));
        }
    }
}
