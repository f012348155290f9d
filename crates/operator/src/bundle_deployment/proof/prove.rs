//! Asks every server for proof.

use windlass_cluster::telemetry::chain;

use super::gate::gate;
use super::{
    super::{halt::Halt, objects::Armament, reconciler::BundleReconciler},
    servers::CalledService,
};
use crate::install::{plan::Plan, traffic::Traffic};

/// What keeps endpoints from being called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::bundle_deployment) struct FailedProof {
    /// One word in CamelCase.
    pub(in crate::bundle_deployment) reason: &'static str,
    /// What each of them answered.
    pub(in crate::bundle_deployment) message: String,
    /// The first server with an endpoint that was not reached at all.
    pub(super) out_of_reach: Option<usize>,
}

impl BundleReconciler {
    /// Proves the plan's webhook servers before they are armed: every ready endpoint is of the newest
    /// revision, serves its certificate, and answers conversion and admission requests; and the API server
    /// reaches it. Halts if a proof is missing.
    pub(in crate::bundle_deployment) async fn prove(
        &self,
        name: &str,
        plan: &Plan,
        armament: &Armament<'_>,
    ) -> Result<(), Halt> {
        let Armament {
            traffic,
            trust_bundles,
        } = armament;
        let servers = self.servers(traffic, trust_bundles)?;
        if servers.is_empty() {
            return Ok(());
        }
        self.gate_on_revisions(plan, &servers).await?;
        let is_for_api_servers =
            |server: &&CalledService| traffic.is_for_api_servers(&server.service, server.port);
        if let Some(problem) = self.ask_servers(name, plan, &servers, traffic).await? {
            let out_of_reach = problem.out_of_reach.and_then(|index| servers.get(index));
            if let Some(server) = out_of_reach.filter(is_for_api_servers) {
                self.halt_out_of_reach(name, plan, server, &problem.message)
                    .await?;
            }
            return Err(gate(problem.reason, problem.message));
        }
        for server in servers.iter().filter(is_for_api_servers) {
            self.prove_from_api_server(name, plan, traffic, server).await?;
        }
        Ok(())
    }

    /// What is wrong with the endpoints of `servers`, each asked for its certificate, and then for what `traffic` sends there.
    pub(in crate::bundle_deployment) async fn ask_servers(
        &self,
        name: &str,
        plan: &Plan,
        servers: &[CalledService],
        traffic: &Traffic,
    ) -> Result<Option<FailedProof>, Halt> {
        let mut problems = Vec::new();
        let mut out_of_reach = None;
        for (index, server) in servers.iter().enumerate() {
            let (words, reached) = self.ask_for_certificates(name, plan, server).await;
            if !reached && out_of_reach.is_none() {
                out_of_reach = Some(index);
            }
            problems.extend(words);
        }
        if !problems.is_empty() {
            return Ok(Some(FailedProof {
                reason: "NotServed",
                message: problems.join("; "),
                out_of_reach,
            }));
        }
        for conversion in &traffic.conversions {
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
                    out_of_reach: None,
                }));
            }
        }
        let problems = self.ask_to_admit(name, plan, servers, &traffic.callers).await?;
        Ok((!problems.is_empty()).then(|| FailedProof {
            reason: "NotAdmitting",
            message: problems.join("; "),
            out_of_reach: None,
        }))
    }

    /// What is wrong with the certificates that a server's endpoints present, and whether each was reached.
    async fn ask_for_certificates(
        &self,
        name: &str,
        plan: &Plan,
        server: &CalledService,
    ) -> (Vec<String>, bool) {
        let server_name = format!("{}.{}.svc", server.service, plan.namespace);
        let mut problems = Vec::new();
        let mut reached = true;
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
            let proven = seen.and_then(|presented| presented.check_trusted(endpoint.address));
            self.context.metrics.record_probe("handshake", proven.is_ok());
            match proven {
                Ok(()) => self.proofs.add(name, fact),
                Err(error) => {
                    reached &= !error.is_unreachable();
                    problems.push(chain(&error));
                }
            }
        }
        (problems, reached)
    }
}
