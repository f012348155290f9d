//! OpenShift's service-ca: how it lets go of a Service's certificate and of the webhooks that call the Service.
//!
//! It issues for a Service that asks by an annotation, and writes its CAs wherever an annotation asks for them; without the
//! annotations it leaves both as they are. A Secret that asks and is of another issuer is issued again, and any key in it but two is
//! taken out. So the Service goes first: what is served stays, and whoever calls it is still told of each new CA. Then the callers
//! change whom they ask, each by one write, and keep the CAs that they have until what is served is Windlass's.

use serde_json::{Value, json};
use thiserror::Error;
use windlass_object::{
    ca_injectors::{CaInjector, SERVICE_CA, SERVICE_CA_SERVING_CERT},
    names, object,
};

use crate::{ADOPTED_FROM, AdoptionStep, callers::called_services, step};

/// What there is of a Service with a certificate of service-ca.
#[derive(Clone, Copy, Debug)]
pub struct ServiceCaObservation<'a> {
    /// The Service.
    pub service: &'a Value,
    /// The Secret that it names, if that is there.
    pub secret: Option<&'a Value>,
    /// What may carry a CA bundle: webhook configurations and CustomResourceDefinitions, or those that ask service-ca.
    pub targets: &'a [Value],
    /// The name that the bundle's Secret for this Service has.
    pub serving_secret: &'a str,
}

/// Why a Service is not taken over, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ServiceCaRefusal {
    /// It asks for no certificate.
    #[error(
        "it asks service-ca for no certificate (annotation {}): install the bundle without --adopt-from service-ca",
        SERVICE_CA_SERVING_CERT[0]
    )]
    NotAsked,
    /// There is no certificate yet.
    #[error("service-ca has not issued the Secret {0} yet: wait for it")]
    NotIssued(String),
}

/// The writes, in order; none where service-ca has let go. The bundle can be installed after them.
///
/// # Errors
///
/// What speaks against it. Nothing is to be written then.
pub fn let_go(observation: &ServiceCaObservation<'_>) -> Result<Vec<AdoptionStep>, ServiceCaRefusal> {
    let service = observation.service;
    let text = |path| object::text(service, path).unwrap_or_default();
    let called = format!("{}/{}", text("/metadata/namespace"), text("/metadata/name"));
    let origin = format!("service-ca/{called}");
    let is_begun = object::annotation(service, ADOPTED_FROM) == Some(&origin);
    let mut asked = SERVICE_CA_SERVING_CERT
        .iter()
        .filter_map(|name| object::annotation(service, name));
    let asked = asked.find(|secret| !secret.is_empty());
    if asked.is_none() && !is_begun {
        return Err(ServiceCaRefusal::NotAsked);
    }
    if let Some(secret) = asked.filter(|_| observation.secret.is_none()) {
        return Err(ServiceCaRefusal::NotIssued(secret.to_owned()));
    }
    let mut annotations = step::without(&SERVICE_CA_SERVING_CERT);
    annotations[ADOPTED_FROM] = origin.clone().into();
    let service = AdoptionStep::relabel(
        service,
        &json!({}),
        &annotations,
        "its certificate stays as it is",
    );
    let targets = observation.targets.iter().filter_map(|target| {
        CaInjector::ServiceCa.asked_by(target)?;
        if !calls(target, &called) {
            return None;
        }
        let mut annotations = step::without(&SERVICE_CA);
        annotations[ADOPTED_FROM] = origin.clone().into();
        annotations[names::INJECT_CA_FROM] = called.clone().into();
        AdoptionStep::relabel(
            target,
            &json!({}),
            &annotations,
            "asks Windlass for the CAs that it trusts",
        )
    });
    let secret = observation.secret.filter(|secret| {
        object::text(secret, "/metadata/name") == Some(observation.serving_secret)
            && object::label(secret, names::SERVING_CERTIFICATE).is_none()
    });
    let labels = json!({names::SERVING_CERTIFICATE: text("/metadata/name")});
    let secret = secret.and_then(|secret| {
        AdoptionStep::relabel(secret, &labels, &json!({}), "may be issued again by Windlass")
    });
    Ok(service.into_iter().chain(targets).chain(secret).collect())
}

/// Takes the marks away when the bundle is installed and works.
pub fn finish(observation: &ServiceCaObservation<'_>) -> Vec<AdoptionStep> {
    let marked = [observation.service].into_iter().chain(observation.targets);
    let annotations = step::without(&[ADOPTED_FROM]);
    let is_its = |live: &&Value| {
        object::annotation(live, ADOPTED_FROM).is_some_and(|origin| origin.starts_with("service-ca/"))
    };
    let unmarked = marked.filter(is_its);
    unmarked
        .filter_map(|live| AdoptionStep::relabel(live, &json!({}), &annotations, "is Windlass's"))
        .collect()
}

/// Whether everything that `target` calls is the Service.
fn calls(target: &Value, called: &str) -> bool {
    let services = called_services(target);
    !services.is_empty()
        && services
            .iter()
            .all(|(namespace, name)| format!("{namespace}/{name}") == called)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AdoptionWrite;

    fn service(annotations: &Value) -> Value {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "n", "name": "hook", "uid": "1",
            "resourceVersion": "1", "annotations": annotations}})
    }

    fn secret() -> Value {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "n", "name": "hook-cert", "uid": "2",
            "resourceVersion": "1"}})
    }

    fn configuration(name: &str, annotations: &Value, services: &[&str]) -> Value {
        let webhook =
            |service: &&str| json!({"clientConfig": {"service": {"namespace": "n", "name": service}}});
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": name, "uid": name, "resourceVersion": "1", "annotations": annotations},
            "webhooks": services.iter().map(webhook).collect::<Vec<_>>()})
    }

    fn observed<'a>(service: &'a Value, secret: &'a Value, targets: &'a [Value]) -> ServiceCaObservation<'a> {
        ServiceCaObservation {
            service,
            secret: Some(secret),
            targets,
            serving_secret: "hook-cert",
        }
    }

    fn written(live: &mut Value, steps: &[AdoptionStep]) {
        for step in steps {
            if let AdoptionWrite::Patch { object, patch } = &step.write
                && object.name == live["metadata"]["name"]
            {
                json_patch::patch(live, patch).unwrap();
            }
        }
    }

    #[test]
    fn the_service_goes_first_and_whoever_calls_it_asks_windlass_in_one_write() {
        let asks = json!({SERVICE_CA[0]: "true"});
        let mut hook = service(&json!({SERVICE_CA_SERVING_CERT[0]: "hook-cert"}));
        let mut secret = secret();
        let mut targets = [
            configuration("its", &asks, &["hook", "hook"]),
            configuration("others", &asks, &["other"]),
            configuration("both", &asks, &["hook", "other"]),
            configuration("mute", &json!({}), &["hook"]),
            configuration("alpha", &json!({SERVICE_CA[1]: "true"}), &["hook"]),
        ];
        let steps = let_go(&observed(&hook, &secret, &targets)).unwrap();
        let order: Vec<_> = steps
            .iter()
            .filter_map(AdoptionStep::object)
            .map(|key| key.name)
            .collect();
        assert_eq!(order, ["hook", "its", "alpha", "hook-cert"]);
        written(&mut hook, &steps);
        written(&mut secret, &steps);
        for target in &mut targets {
            written(target, &steps);
        }
        assert_eq!(
            hook["metadata"]["annotations"],
            json!({ADOPTED_FROM: "service-ca/n/hook"})
        );
        assert_eq!(
            secret["metadata"]["labels"],
            json!({names::SERVING_CERTIFICATE: "hook"})
        );
        let taken = json!({ADOPTED_FROM: "service-ca/n/hook", names::INJECT_CA_FROM: "n/hook"});
        for (target, annotations) in targets.iter().zip([&taken, &asks, &asks, &json!({}), &taken]) {
            assert_eq!(
                &target["metadata"]["annotations"], annotations,
                "{}",
                target["metadata"]["name"]
            );
        }
        assert_eq!(let_go(&observed(&hook, &secret, &targets)), Ok(vec![]));
        let last = finish(&observed(&hook, &secret, &targets));
        for target in [&mut hook].into_iter().chain(&mut targets) {
            written(target, &last);
        }
        assert_eq!(hook["metadata"]["annotations"], json!({}));
        assert_eq!(
            targets[0]["metadata"]["annotations"],
            json!({names::INJECT_CA_FROM: "n/hook"})
        );
    }

    #[test]
    fn a_service_that_asks_for_nothing_is_refused() {
        for (annotations, secret, expected) in [
            (json!({}), Some(secret()), ServiceCaRefusal::NotAsked),
            (
                json!({SERVICE_CA_SERVING_CERT[1]: "hook-cert"}),
                None,
                ServiceCaRefusal::NotIssued("hook-cert".to_owned()),
            ),
        ] {
            let service = service(&annotations);
            let observation = ServiceCaObservation {
                service: &service,
                secret: secret.as_ref(),
                targets: &[],
                serving_secret: "hook-cert",
            };
            assert_eq!(let_go(&observation), Err(expected));
        }
    }
}
