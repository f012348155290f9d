//! What webhooks are trusted by: the trust bundle of each Service that they call.

use std::{collections::BTreeMap, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;
use windlass_api::{CertificateStatus, ServingCertificate};
use windlass_bundle::render::Conversion;
use windlass_cluster::{kinds, prober::TrustAnchors, telemetry::chain};
use windlass_object::{object, secret_keys::CA_CERTIFICATES};

use super::{halt::Halt, reconciler::BundleReconciler};
use crate::install::{plan::Plan, status::Milestone, traffic::client_configs};

/// The trust bundles of Services.
#[derive(Debug, Default)]
pub(super) struct TrustBundles(BTreeMap<String, Arc<VerifiableBundle>>);

/// A trust bundle that can be verified with: what cannot must never become a CA bundle.
#[derive(Debug)]
pub(super) struct VerifiableBundle {
    pub(super) pem: Vec<u8>,
    pub(super) anchors: TrustAnchors,
}

impl TrustBundles {
    /// That of a Service.
    pub(super) fn of(&self, service: &str) -> Option<&VerifiableBundle> {
        self.0.get(service).map(AsRef::as_ref)
    }

    /// `spec.conversion` that sends conversions where `conversion` says.
    pub(super) fn stanza(&self, conversion: &Conversion) -> Value {
        conversion.stanza(self.ca_bundle(&conversion.service).as_deref())
    }

    /// A caller with the trust bundle of each Service that it calls.
    pub(super) fn put_into(&self, caller: &Value) -> Value {
        let mut armed = caller.clone();
        for client in client_configs(caller) {
            let service = object::text(caller, &format!("{client}/service/name")).unwrap_or_default();
            let client = armed.pointer_mut(&client).and_then(Value::as_object_mut);
            if let (Some(client), Some(ca_bundle)) = (client, self.ca_bundle(service)) {
                client.insert("caBundle".to_owned(), ca_bundle.into());
            }
        }
        armed
    }

    fn ca_bundle(&self, service: &str) -> Option<String> {
        self.of(service).map(|bundle| STANDARD.encode(&bundle.pem))
    }
}

impl BundleReconciler {
    /// Each Service's trust bundle, from the Secret of its ServingCertificate.
    pub(super) fn trust_bundles(&self, plan: &Plan) -> Result<TrustBundles, Halt> {
        let mut bundles = TrustBundles::default();
        for certificate in &plan.certificates {
            let key = kinds::SECRET.object(Some(&plan.namespace), &certificate.secret);
            let pem = self
                .context
                .index
                .find(&key)
                .and_then(|secret| object::data(&secret, CA_CERTIFICATES));
            let waiting = |message| Halt::waiting(Milestone::Installed, "WaitingForCertificate", message);
            let Some(pem) = pem else {
                return Err(waiting(format!(
                    "waiting for {key} to contain a certificate and its CA"
                )));
            };
            let anchors =
                TrustAnchors::parse(&pem).map_err(|error| waiting(format!("{key}: {}", chain(&error))))?;
            let bundle = Arc::new(VerifiableBundle { pem, anchors });
            for service in [&certificate.service, &certificate.green] {
                bundles.0.insert(service.clone(), bundle.clone());
            }
        }
        Ok(bundles)
    }

    /// How the ServingCertificates of a plan are, as far as they have said.
    pub(super) fn certificates(&self, plan: &Plan) -> Vec<CertificateStatus> {
        let certificates = plan.certificates.iter();
        certificates
            .map(|certificate| self.certificate_status(plan, &certificate.service))
            .collect()
    }

    fn certificate_status(&self, plan: &Plan, name: &str) -> CertificateStatus {
        let key = kinds::SERVING_CERTIFICATE.object(Some(&plan.namespace), name);
        let status = self
            .context
            .index
            .find(&key)
            .and_then(|live| serde_json::from_value::<ServingCertificate>(Value::clone(&live)).ok())
            .and_then(|live| live.status)
            .unwrap_or_default();
        CertificateStatus {
            name: name.to_owned(),
            not_after: status.not_after,
            renewal_time: status.renewal_time,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_webhook_gets_the_trust_of_its_own_service() {
        let configuration = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": {"name": "w"}, "webhooks": [
            {"name": "a", "clientConfig": {"service": {"name": "one"}}},
            {"name": "b", "clientConfig": {"service": {"name": "other"}}},
        ]});
        let bundle = |pem: &[u8]| VerifiableBundle {
            pem: pem.to_vec(),
            anchors: TrustAnchors::none(),
        };
        let bundles = TrustBundles(BTreeMap::from([
            ("one".to_owned(), Arc::new(bundle(b"1"))),
            ("other".to_owned(), Arc::new(bundle(b"2"))),
        ]));
        let armed = bundles.put_into(&configuration);
        assert_eq!(armed["webhooks"][0]["clientConfig"]["caBundle"], "MQ==");
        assert_eq!(armed["webhooks"][1]["clientConfig"]["caBundle"], "Mg==");
        let config = json!({
            "apiVersion": "runtime.cluster.x-k8s.io/v1beta2", "kind": "ExtensionConfig", "metadata": {"name": "e"},
            "spec": {"clientConfig": {"service": {"name": "other"}}},
        });
        assert_eq!(
            bundles.put_into(&config)["spec"]["clientConfig"]["caBundle"],
            "Mg=="
        );
    }
}
