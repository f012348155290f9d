//! Proof before arming: every ready endpoint is of the newest revision, presents a certificate that verifies under the
//! trust bundle, and converts.

mod conversion;
mod revisions;
mod servers;

use std::collections::{HashMap, HashSet};

use parking_lot::Mutex;
use windlass_bundle::render::Conversion;
use windlass_cluster::{endpoints::Endpoint, telemetry::chain};

use super::{BundleReconciler, Halt, trust::TrustBundles};
use crate::install::{plan::Plan, status::Milestone};

pub(super) use servers::{CalledService, called};

/// What has been proven already, by BundleDeployment: an endpoint is not dialled again while nothing has changed.
#[derive(Default)]
pub(super) struct Proofs {
    known: Mutex<HashMap<String, HashSet<Fact>>>,
}

/// One thing that was seen of one endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Fact {
    endpoint: Endpoint,
    /// SHA-256 of the trust bundle.
    trust: [u8; 32],
    /// What it is called by and what it was asked to do.
    subject: String,
}

/// What keeps endpoints from being called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FailedProof {
    /// One word in CamelCase.
    pub(super) reason: &'static str,
    /// What each of them answered.
    pub(super) message: String,
}

// === impl Proofs ===

impl Proofs {
    /// Forgets a BundleDeployment that is gone.
    pub(super) fn forget(&self, name: &str) {
        self.known.lock().remove(name);
    }

    fn holds(&self, name: &str, fact: &Fact) -> bool {
        self.known
            .lock()
            .get(name)
            .is_some_and(|facts| facts.contains(fact))
    }

    fn add(&self, name: &str, fact: Fact) {
        self.known.lock().entry(name.to_owned()).or_default().insert(fact);
    }
}

// === impl BundleReconciler ===

impl BundleReconciler {
    /// Returns when everything is proven; halts at what is not.
    pub(super) async fn prove(
        &self,
        name: &str,
        plan: &Plan,
        trust_bundles: &TrustBundles,
    ) -> Result<(), Halt> {
        let servers = self.servers(plan, trust_bundles)?;
        if servers.is_empty() {
            return Ok(());
        }
        self.gate_on_revisions(plan, &servers).await?;
        let problem = self.ask_servers(name, plan, &servers, &plan.conversions).await?;
        problem.map_or(Ok(()), |problem| Err(gate(problem.reason, problem.message)))
    }

    /// What is wrong with the endpoints of `servers`, each asked for its certificate and then for `conversions`.
    pub(super) async fn ask_servers(
        &self,
        name: &str,
        plan: &Plan,
        servers: &[CalledService],
        conversions: &[Conversion],
    ) -> Result<Option<FailedProof>, Halt> {
        let mut problems = Vec::new();
        for server in servers {
            problems.extend(self.ask_for_certificates(name, plan, server).await);
        }
        if !problems.is_empty() {
            return Ok(Some(FailedProof {
                reason: "NotServed",
                message: problems.join("; "),
            }));
        }
        for conversion in conversions {
            let of = |server: &&CalledService| {
                server.service == conversion.service && server.port == conversion.port
            };
            let Some(server) = servers.iter().find(of) else {
                continue;
            };
            let problems = self.ask_to_convert(name, plan, conversion, server).await?;
            if !problems.is_empty() {
                return Ok(Some(FailedProof {
                    reason: "NotConverting",
                    message: problems.join("; "),
                }));
            }
        }
        Ok(None)
    }

    /// What is wrong with the certificates that a server's endpoints present.
    async fn ask_for_certificates(&self, name: &str, plan: &Plan, server: &CalledService) -> Vec<String> {
        let server_name = format!("{}.{}.svc", server.service, plan.namespace);
        let mut problems = Vec::new();
        for endpoint in &server.endpoints {
            let fact = server.fact(endpoint, server_name.clone());
            if self.proofs.holds(name, &fact) {
                continue;
            }
            let seen = self
                .context
                .prober
                .handshake(endpoint.address, &server_name, &server.anchors)
                .await;
            let proven = seen.and_then(|presented| presented.trusted(endpoint.address));
            self.context.metrics.probed("handshake", proven.is_ok());
            match proven {
                Ok(()) => self.proofs.add(name, fact),
                Err(error) => problems.push(chain(&error)),
            }
        }
        problems
    }
}

fn gate(reason: &str, message: String) -> Halt {
    Halt::waiting(Milestone::Armed, reason, message)
}
