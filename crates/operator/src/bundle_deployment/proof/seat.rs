//! Proof from the API server's seat: what the operator can dial is not what the API server can. It is asked by a webhook
//! configuration of our own, which takes one object that only we create, as a dry run (see [`SeatProbe`]).

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD};
use tracing::info;
use windlass_bundle::render::Conversion;
use windlass_cluster::{Kind, RequestError, endpoints::Endpoint, kinds};
use windlass_object::{ObjectKey, names, object};

use super::{super::objects::CALLER_KINDS, CalledService, gate::gate};
use crate::{
    bundle_deployment::{halt::Halt, memory::Seats, reconciler::BundleReconciler},
    install::{
        plan::Plan,
        proof::{ProbePart, SeatAnswer, SeatFinding, SeatProbe, SeatTally},
        traffic::{CalledPort, Traffic, is_of_api_servers},
    },
};

/// The pause before an API server is asked again that has not heard of the question.
const PAUSE: Duration = Duration::from_millis(100);

impl BundleReconciler {
    /// Proves that the API server completes a TLS handshake with the server behind a Service's port, unless
    /// it calls that already. Halts if it does not.
    pub(super) async fn prove_from_api_server(
        &self,
        name: &str,
        plan: &Plan,
        traffic: &Traffic,
        server: &CalledService,
    ) -> Result<(), Halt> {
        if self.is_called_already(name, plan, traffic, server) {
            return Ok(());
        }
        let place = place(server);
        match self.ask_api_server(name, plan, server).await? {
            SeatFinding::Reached => Ok(()),
            SeatFinding::Unreachable(why) => {
                let message = format!(
                    "the API server does not reach {place}, but the operator does. The API server says: {why}"
                );
                Err(gate("UnreachableFromAPIServer", message))
            }
            SeatFinding::Undecided(why) => {
                let message = format!("cannot check whether the API server reaches {place}: {why}");
                Err(gate("ProbeFailed", message))
            }
        }
    }

    /// Halts where the operator itself does not reach the endpoints of `server`, with what the API server says of it.
    pub(super) async fn halt_out_of_reach(
        &self,
        name: &str,
        plan: &Plan,
        server: &CalledService,
        problem: &str,
    ) -> Result<(), Halt> {
        let own = &self.context.namespace;
        let place = place(server);
        let (reason, message) = match self.ask_api_server(name, plan, server).await? {
            SeatFinding::Reached => (
                "UnreachableFromOperator",
                format!(
                    "the operator does not reach {place}, but the API server does. Usually a NetworkPolicy allows ingress \
                     from the API server only: allow it from the namespace {own}, too. The operator found: {problem}"
                ),
            ),
            SeatFinding::Unreachable(why) => (
                "NotServed",
                format!("{problem}; the API server does not reach {place} either: {why}"),
            ),
            SeatFinding::Undecided(_) => ("NotServed", problem.to_owned()),
        };
        Err(gate(reason, message))
    }

    /// Takes back what the API server is asked by for a BundleDeployment.
    pub(in crate::bundle_deployment) async fn withdraw_probes(&self, name: &str) -> Result<(), RequestError> {
        for live in self
            .context
            .index
            .objects(&kinds::VALIDATING_WEBHOOK_CONFIGURATION)
        {
            let Some(key) =
                ObjectKey::from_object(&live).filter(|_| object::label(&live, names::PROBE) == Some(name))
            else {
                continue;
            };
            let uid = object::text(&live, "/metadata/uid");
            match self.context.cluster.delete(&key, uid).await {
                // Another one has its name, and is told apart at the next look.
                Err(error) if !error.is_conflict() => return Err(error),
                _ => info!(object = %key, "Removed the probe"),
            }
        }
        Ok(())
    }

    /// Whether API traffic that was proven goes to a server already: a proof would come too late.
    fn is_called_already(&self, name: &str, plan: &Plan, traffic: &Traffic, server: &CalledService) -> bool {
        let call = CalledPort {
            namespace: plan.namespace.clone(),
            service: server.service.clone(),
            port: server.port,
        };
        let of = |kind: &Kind| {
            let live = self.context.index.objects(kind);
            live.iter()
                .filter(|live| object::label(live, names::BUNDLE_DEPLOYMENT) == Some(name))
                .any(|live| CalledPort::all_of(live).contains(&call))
        };
        let mut kinds = CALLER_KINDS.iter().filter(|kind| is_of_api_servers(&kind.kind));
        kinds.any(of) || self.converts_already(name, plan, traffic, server)
    }

    /// Whether a conversion goes there whose proof the status tells of: one of a new CustomResourceDefinition is there
    /// before.
    fn converts_already(&self, name: &str, plan: &Plan, traffic: &Traffic, server: &CalledService) -> bool {
        traffic.conversions.iter().any(|conversion| {
            let live = self
                .crd_seen(&conversion.crd)
                .filter(|_| self.was_proven(name, &conversion.crd));
            let stanza = live.as_deref().and_then(|live| live.pointer("/spec/conversion"));
            let called = stanza.and_then(|stanza| Conversion::from_stanza(&conversion.crd, stanza));
            called.is_some_and(|called| {
                (called.namespace.as_str(), called.service.as_str(), called.port)
                    == (plan.namespace.as_str(), server.service.as_str(), server.port)
            })
        })
    }

    /// What the API server says of a server, or has said a while ago.
    async fn ask_api_server(
        &self,
        name: &str,
        plan: &Plan,
        server: &CalledService,
    ) -> Result<SeatFinding, Halt> {
        let probe = SeatProbe::new(
            name,
            &self.context.namespace,
            (&plan.namespace, &server.service, server.port),
            STANDARD.encode(&server.pem),
        );
        let seats: &Seats = &self.seats;
        let endpoints: &[Endpoint] = &server.endpoints;
        let now = self.context.clock.now();
        if let Some(finding) = seats.find(name, &probe.name, endpoints, now) {
            return Ok(finding);
        }
        let finding = match self.ensure_probe(&probe).await? {
            Some(undecided) => undecided,
            None => self.ask_until_answers_agree(&probe).await?,
        };
        info!(
            service = server.service,
            port = server.port,
            ?finding,
            "Checked whether the API server reaches a Service"
        );
        self.context
            .metrics
            .record_probe("seat", finding == SeatFinding::Reached);
        seats.add(
            name,
            &probe.name,
            endpoints,
            finding.clone(),
            self.context.clock.now(),
        );
        Ok(finding)
    }

    /// Sees to it that the configuration is there by which the API server is asked; why it cannot be, if that is so.
    async fn ensure_probe(&self, probe: &SeatProbe) -> Result<Option<SeatFinding>, Halt> {
        let configuration = probe.configuration();
        let key = ObjectKey::from_object(&configuration).ok_or(RequestError::Nameless)?;
        if self.context.index.find(&key).is_some() {
            return Ok(None);
        }
        match self.context.cluster.create(&configuration, names::INSTALL).await {
            Ok(_) => info!(object = %key, "Created a probe"),
            // It is there, and not seen yet.
            Err(error) if error.is_conflict() => {}
            Err(error) if error.is_rejection() => return Ok(Some(SeatFinding::Undecided(error.to_string()))),
            Err(error) => return Err(error.into()),
        }
        Ok(None)
    }

    async fn ask_until_answers_agree(&self, probe: &SeatProbe) -> Result<SeatFinding, Halt> {
        let mut tally = SeatTally::default();
        loop {
            let answer = self.ask_once(probe).await?;
            let is_unheard = answer == SeatAnswer::Passed;
            if let Some(finding) = tally.count(answer, probe) {
                return Ok(finding);
            }
            if is_unheard {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    /// Has the API server call the webhook once. One that lets the object pass has answered, if the API server has heard
    /// of the configuration.
    async fn ask_once(&self, probe: &SeatProbe) -> Result<SeatAnswer, Halt> {
        let answer = self.try_object(probe, ProbePart::Reach).await?;
        if answer != SeatAnswer::Passed {
            return Ok(answer);
        }
        match self.try_object(probe, ProbePart::Observe).await? {
            SeatAnswer::Passed | SeatAnswer::Unrelated { .. } => Ok(SeatAnswer::Passed),
            SeatAnswer::Reached | SeatAnswer::Unreachable { .. } => Ok(SeatAnswer::Reached),
        }
    }

    async fn try_object(&self, probe: &SeatProbe, part: ProbePart) -> Result<SeatAnswer, Halt> {
        let object = probe.object(part);
        match self.context.cluster.dry_run_create(&object, names::INSTALL).await {
            Ok(_) => Ok(SeatAnswer::Passed),
            // Somebody has stored it: that is found out after all webhooks are called.
            Err(error) if error.is_conflict() => Ok(SeatAnswer::Passed),
            Err(RequestError::Refused { status, .. })
                if !SeatAnswer::is_missing(status.code, &status.message) =>
            {
                Ok(SeatAnswer::of(&probe.webhook_name(part), &status.message))
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn place(server: &CalledService) -> String {
    format!("the Service {} on port {}", server.service, server.port)
}
