//! Who answers the calls of webhooks.

use std::collections::BTreeSet;

use serde_json::Value;
use sha2::{Digest, Sha256};
use windlass_cluster::{
    endpoints::{self, Endpoint},
    kinds,
    prober::TrustAnchors,
};
use windlass_object::object;

use super::gate::gate;
use crate::bundle_deployment::memory::Fact;
use crate::{
    bundle_deployment::{halt::Halt, reconciler::BundleReconciler, trust::TrustBundles},
    install::plan::{DEFAULT_PORT, Phase, Plan},
};

/// A Service whose endpoints webhooks call.
pub(crate) struct CalledService {
    pub(super) service: String,
    pub(super) port: i64,
    pub(super) endpoints: Vec<Endpoint>,
    pub(super) anchors: TrustAnchors,
    /// The trust bundle of the Service.
    pub(super) pem: Vec<u8>,
    trust: [u8; 32],
}

// === impl CalledService ===

impl CalledService {
    /// The endpoints behind a Service's port, with the trust bundle of the Service.
    pub(crate) fn new(
        service: &str,
        port: i64,
        endpoints: Vec<Endpoint>,
        trust_bundles: &TrustBundles,
    ) -> Result<Self, Halt> {
        let Some(bundle) = trust_bundles.of(service) else {
            let message = format!("waiting for the trust bundle of the Service {service}");
            return Err(gate("NoTrust", message));
        };
        Ok(Self {
            service: service.to_owned(),
            port,
            endpoints,
            anchors: bundle.anchors.clone(),
            pem: bundle.pem.clone(),
            trust: Sha256::digest(&bundle.pem).into(),
        })
    }

    pub(super) fn fact(&self, endpoint: &Endpoint, subject: String) -> Fact {
        Fact {
            endpoint: endpoint.clone(),
            trust: self.trust,
            subject,
        }
    }
}

// === impl BundleReconciler ===

impl BundleReconciler {
    /// Each Service and port that a webhook of the plan calls.
    pub(super) fn servers(
        &self,
        plan: &Plan,
        trust_bundles: &TrustBundles,
    ) -> Result<Vec<CalledService>, Halt> {
        let mut servers = Vec::new();
        for (service, port) in called(plan) {
            let key = kinds::SERVICE.object(Some(&plan.namespace), &service);
            let Some(live) = self.context.index.find(&key) else {
                return Err(gate("NoEndpoints", format!("waiting for {key}")));
            };
            let ready = endpoints::ready(&self.context.index, &live, Some(port));
            servers.push(CalledService::new(&service, port, ready, trust_bundles)?);
        }
        Ok(servers)
    }
}

/// The Services and ports that the webhooks of a plan call.
pub(crate) fn called(plan: &Plan) -> BTreeSet<(String, i64)> {
    let admission = plan
        .phases
        .of(Phase::Admission)
        .flat_map(|configuration| object::items(configuration, "/webhooks"))
        .filter_map(|webhook| webhook.pointer("/clientConfig/service"))
        .filter_map(|service| {
            let port = service
                .get("port")
                .and_then(Value::as_i64)
                .unwrap_or(DEFAULT_PORT);
            Some((object::text(service, "/name")?.to_owned(), port))
        });
    let conversions = plan
        .conversions
        .iter()
        .map(|conversion| (conversion.service.clone(), conversion.port));
    admission.chain(conversions).collect()
}
