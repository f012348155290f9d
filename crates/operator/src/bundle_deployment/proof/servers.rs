//! Who answers the calls of webhooks.

use super::gate::gate;
use crate::bundle_deployment::memory::Fact;
use crate::{
    bundle_deployment::{halt::Halt, reconciler::BundleReconciler, trust::TrustBundles},
    install::traffic::Traffic,
};
use sha2::{Digest, Sha256};
use windlass_cluster::{
    endpoints::{self, Endpoint},
    kinds,
    prober::TrustAnchors,
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

impl BundleReconciler {
    /// Each Service and port that webhooks are to call.
    pub(super) fn servers(
        &self,
        traffic: &Traffic,
        trust_bundles: &TrustBundles,
    ) -> Result<Vec<CalledService>, Halt> {
        let mut servers = Vec::new();
        for call in traffic.calls() {
            let key = kinds::SERVICE.object(Some(&call.namespace), &call.service);
            let Some(live) = self.context.index.find(&key) else {
                return Err(gate("NoEndpoints", format!("waiting for {key}")));
            };
            let ready = endpoints::ready(&self.context.index, &live, Some(call.port));
            servers.push(CalledService::new(
                &call.service,
                call.port,
                ready,
                trust_bundles,
            )?);
        }
        Ok(servers)
    }
}
