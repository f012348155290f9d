//! Proof by asking: each endpoint is sent an AdmissionReview for an object that the webhook's rules match, as a dry run, and
//! must answer it as the API server wants it. What it says of the object does not matter.

use futures::future::{join_all, try_join_all};
use serde_json::Value;
use tracing::debug;
use windlass_cluster::{Kind, RequestError, endpoints::Endpoint, prober::WebhookAddress, telemetry::chain};
use windlass_crd::{is_served, version};
use windlass_object::{ObjectKey, text::shortened};

use super::CalledService;
use crate::{
    bundle_deployment::{halt::Halt, reconciler::BundleReconciler},
    install::{
        plan::{Phase, Plan},
        proof::{
            AdmissionRequest, AdmissionWebhook, Provenance, RequestTarget, admission_webhooks, judge, review,
            targets,
        },
    },
};

/// The longest words about one endpoint, in bytes.
const LONGEST_PROBLEM: usize = 500;

impl BundleReconciler {
    /// Proves that the endpoints of `servers` give each webhook of `configurations` an answer that the API
    /// server accepts, and returns the problems.
    pub(super) async fn ask_to_admit(
        &self,
        name: &str,
        plan: &Plan,
        servers: &[CalledService],
        configurations: &[Value],
    ) -> Result<Vec<String>, Halt> {
        // Side by side: each may take as long as the API server would wait for it.
        let asked = configurations
            .iter()
            .flat_map(admission_webhooks)
            .map(|webhook| async move {
                let calls = |server: &&CalledService| {
                    server.service == webhook.service && server.port == webhook.port
                };
                match servers.iter().find(calls) {
                    Some(server) => self.ask_webhook(name, plan, &webhook, server).await,
                    None => Ok(Vec::new()),
                }
            });
        let problems = try_join_all(asked).await?;
        Ok(problems.into_iter().flatten().collect())
    }

    /// What is wrong with how the endpoints of `server` answer `webhook`.
    async fn ask_webhook(
        &self,
        name: &str,
        plan: &Plan,
        webhook: &AdmissionWebhook<'_>,
        server: &CalledService,
    ) -> Result<Vec<String>, Halt> {
        let address = WebhookAddress {
            server_name: format!("{}.{}.svc", server.service, plan.namespace),
            path: webhook.path.to_owned(),
        };
        let subject = format!("{address:?} {webhook:?}");
        let fresh: Vec<_> = server
            .endpoints
            .iter()
            .filter(|endpoint| !self.proofs.holds(name, &server.fact(endpoint, subject.clone())))
            .collect();
        if fresh.is_empty() {
            return Ok(Vec::new());
        }
        let Some(request) = self.admission_request(plan, webhook).await? else {
            debug!(
                webhook = webhook.name,
                "No known object matches the rules of the webhook"
            );
            return Ok(Vec::new());
        };
        let asked = fresh.iter().map(|endpoint| async {
            let answered = self.admits(endpoint, webhook, &address, server, &request).await;
            (*endpoint, answered)
        });
        let mut problems = Vec::new();
        for (endpoint, answered) in join_all(asked).await {
            self.context.metrics.record_probe("admission", answered.is_ok());
            match answered {
                Ok(()) => self.proofs.add(name, server.fact(endpoint, subject.clone())),
                Err(problem) => problems.push(format!(
                    "admission webhook {} on {}: {}; the test request was to {} {}",
                    webhook.name,
                    webhook.path,
                    shortened(problem, LONGEST_PROBLEM),
                    request.target.operation.name(),
                    described(&request)
                )),
            }
        }
        Ok(problems)
    }

    /// Whether one endpoint answers.
    async fn admits(
        &self,
        endpoint: &Endpoint,
        webhook: &AdmissionWebhook<'_>,
        address: &WebhookAddress,
        server: &CalledService,
        request: &AdmissionRequest,
    ) -> Result<(), String> {
        let uid = format!("windlass-{}-{}", endpoint.address, webhook.name);
        let body = review(webhook, request, &uid);
        let answer = self
            .context
            .prober
            .admit(endpoint.address, address, &server.anchors, &body, webhook.timeout)
            .await
            .map_err(|error| chain(&error))?;
        judge(webhook, request.target.operation, &uid, &answer)
            .map_err(|problem| format!("{}: {problem}", endpoint.address))
    }

    /// What to ask a webhook: about an object that is stored, else about an example of the bundle's author, else about an
    /// invented one. `None` where no known object matches its rules.
    async fn admission_request(
        &self,
        plan: &Plan,
        webhook: &AdmissionWebhook<'_>,
    ) -> Result<Option<AdmissionRequest>, Halt> {
        let crds: Vec<_> = plan.phases.of(Phase::Crds).collect();
        let targets = targets(webhook.rules, &crds);
        for target in &targets {
            if let Some(object) = self.stored_object_of(target).await? {
                return Ok(Some(target.clone().stored(object)));
            }
        }
        let sampled = targets.into_iter().filter_map(|target| {
            let crd = target.crd.clone();
            let crd = crd.as_deref().and_then(|crd| plan.crd(crd));
            target.sampled(crd, &plan.examples)
        });
        Ok(sampled.min_by_key(|request| request.provenance))
    }

    /// An object of a CustomResourceDefinition in the version of a target, if one is stored and that version is served.
    /// Objects of built-in kinds are nobody's business here.
    async fn stored_object_of(&self, target: &RequestTarget) -> Result<Option<Value>, Halt> {
        let Some(crd) = target.crd.as_deref().and_then(|crd| self.crd_seen(crd)) else {
            return Ok(None);
        };
        if !version(&crd, &target.version).is_some_and(is_served) {
            return Ok(None);
        }
        match self
            .context
            .cluster
            .find_any(&Kind::from_crd(&crd, &target.version))
            .await
        {
            // One that cannot be read, since its conversion fails, cannot be asked about.
            Err(RequestError::Refused { .. } | RequestError::UnknownKind { .. }) => Ok(None),
            found => Ok(found?),
        }
    }
}

/// The object of a request, for a message.
fn described(request: &AdmissionRequest) -> String {
    let AdmissionRequest {
        target,
        object,
        provenance,
    } = request;
    match provenance {
        Provenance::Stored => ObjectKey::from_object(object).map_or_else(String::new, |key| key.to_string()),
        Provenance::Example => format!("the {} of the bundle's alm-examples", target.kind),
        Provenance::Invented => format!(
            "a generated {} of {} (an object in the bundle's alm-examples would be used instead)",
            target.kind,
            target.api_version()
        ),
    }
}
