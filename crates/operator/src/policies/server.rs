//! The HTTP server that answers AdmissionReviews from policies.

use std::{collections::HashSet, net::IpAddr, sync::Arc, time::Duration};

use axum::{
    Json, Router,
    extract::{Extension, Request, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::post,
};
use kube::Client;
use policy::{AdmissionAttributes, Answers, EvaluationBudget, PolicyEvaluation, PolicyFailure};
use serde_json::Value;
use thiserror::Error;
use tokio::{
    sync::OwnedSemaphorePermit,
    task::{JoinError, spawn_blocking},
    time::{Instant, timeout_at},
};
use tracing::{info, warn};
use webhook_transport::server::ConnectedClient;
use windlass_cluster::{Cluster, Index, RequestError, telemetry::chain};
use windlass_object::GoDuration;

use super::{
    admission,
    concurrency_limit::{EvaluationLimit, EvaluationPermit},
    references::{AllowedHosts, ReferenceReading, References},
    reports::AuditLedger,
    request_gate::{EvaluatedPolicies, RequestGate},
    review::PolicyReview,
    snapshot::PolicySnapshot,
    store::PolicyStore,
    verdict::Verdict,
};
use crate::{
    admission::{Bodies, InvalidReview, ReadBodyError, SHORT_BODY},
    namespaces::namespace,
};

/// The path of override policies.
pub const MUTATE_PATH: &str = "/mutate";

/// The path of validate policies.
pub const VALIDATE_PATH: &str = "/validate";

/// The path that returns the version of the loaded policies.
pub(super) const VERSION_PATH: &str = "/policies";

/// Answers AdmissionReviews from policies.
pub(crate) struct PolicyServer {
    store: Arc<PolicyStore>,
    index: Arc<Index>,
    /// Reads Namespaces that the watch has not reported yet.
    cluster: Cluster,
    bodies: Arc<Bodies>,
    references: Arc<References>,
    ledger: Arc<AuditLedger>,
    permits: EvaluationLimit,
}

/// A request in evaluation, which is repeated each time that more referenced data is available.
struct PendingReview {
    stage: Stage,
    review: PolicyReview,
    namespace: Option<Arc<Value>>,
    policies: Arc<PolicySnapshot>,
    store: Arc<PolicyStore>,
    references: Arc<References>,
    ledger: Arc<AuditLedger>,
    answers: Answers,
    reading: ReferenceReading,
    evaluated: EvaluatedPolicies,
    /// Held as long as the body.
    _room: OwnedSemaphorePermit,
}

/// Whether override or validate policies are evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Override,
    Validate,
}

/// Why a request is answered by an HTTP error, not an AdmissionReview.
#[derive(Debug, Error)]
enum AnswerError {
    #[error(transparent)]
    Body(#[from] ReadBodyError),
    #[error(transparent)]
    Invalid(#[from] InvalidReview),
    #[error("policies are not loaded yet; try again later")]
    Unsynced,
    #[error("too many requests; try again later")]
    Busy,
    #[error("cannot read the Namespace of the object")]
    Namespace(#[source] RequestError),
    #[error("the evaluation of a policy panicked; report this as a bug of Windlass")]
    Evaluation(#[source] JoinError),
}

/// The timeout of a client whose request states none: the default of the API server.
const DEFAULT_PATIENCE: Duration = Duration::from_secs(10);

/// The longest timeout of an API server.
const LONGEST_PATIENCE: Duration = Duration::from_secs(30);

impl PolicyServer {
    /// Answers from the policies in `store`. `client` has the operator's identity, whether or not this
    /// process leads.
    pub(crate) fn new(
        store: Arc<PolicyStore>,
        index: Arc<Index>,
        client: Client,
        bodies: Arc<Bodies>,
        references: Arc<References>,
        ledger: Arc<AuditLedger>,
    ) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            store,
            index,
            cluster: Cluster::new(client, LONGEST_PATIENCE),
            bodies,
            references,
            ledger,
            permits: EvaluationLimit::new(processors),
        }
    }

    pub(crate) fn router(self: Arc<Self>) -> Router {
        Router::new()
            .route(MUTATE_PATH, post(mutate))
            .route(VALIDATE_PATH, post(validate))
            .route(VERSION_PATH, post(version))
            .with_state(self)
    }

    async fn respond(&self, stage: Stage, client: IpAddr, request: Request) -> Response {
        let began = Instant::now();
        let deadline = began + time_limit(request.uri().query());
        let answer = timeout_at(deadline, self.answer(stage, client, request, deadline)).await;
        let answer = answer.unwrap_or(Err(AnswerError::Busy));
        let metrics = self.store.metrics();
        metrics.record_answer(stage.name(), answer.is_ok(), began.elapsed());
        match answer {
            Ok(answer) => Json(answer).into_response(),
            Err(error) => {
                let status = error.status();
                if status.is_server_error() {
                    warn!(error = chain(&error), "Cannot answer an AdmissionReview");
                }
                (status, chain(&error)).into_response()
            }
        }
    }

    async fn answer(
        &self,
        stage: Stage,
        client: IpAddr,
        request: Request,
        deadline: Instant,
    ) -> Result<Value, AnswerError> {
        let body = self.bodies.read_whole(client, request).await?;
        // Parsing a long body would block other requests, so a blocking thread does it.
        let review = if body.bytes.len() <= SHORT_BODY {
            PolicyReview::read(&body.bytes)?
        } else {
            let bytes = body.bytes;
            spawn_blocking(move || PolicyReview::read(&bytes))
                .await
                .map_err(AnswerError::Evaluation)??
        };
        let policies = self.store.synced().await.map_err(AnswerError::Evaluation)?;
        // Without all policies the server cannot know that none denies the request.
        if !policies.is_complete {
            return Err(AnswerError::Unsynced);
        }
        let namespace = self.namespace_of(&review).await?;
        let mut pending = Box::new(PendingReview {
            reading: ReferenceReading::for_review(&review, deadline),
            stage,
            review,
            namespace,
            policies,
            store: self.store.clone(),
            references: self.references.clone(),
            ledger: self.ledger.clone(),
            answers: Answers::default(),
            evaluated: EvaluatedPolicies::default(),
            _room: body.room,
        });
        loop {
            // The permit is released while data is fetched.
            let permit = self.permits.acquire(deadline).await.ok_or(AnswerError::Busy)?;
            let task = spawn_blocking(move || {
                let evaluation = pending.evaluate(&permit);
                (pending, evaluation)
            });
            let evaluation;
            (pending, evaluation) = task.await.map_err(AnswerError::Evaluation)?;
            match evaluation? {
                PolicyEvaluation::Done(verdict) => return Ok(verdict.answer(&pending.review.uid)),
                // An evaluation never requests data that it was given, so the loop ends.
                PolicyEvaluation::Missing(missing) => {
                    let PendingReview { reading, answers, .. } = &mut *pending;
                    self.references.read(missing, *reading, answers).await;
                }
            }
        }
    }

    /// Returns the Namespace of the object.
    async fn namespace_of(&self, review: &PolicyReview) -> Result<Option<Arc<Value>>, AnswerError> {
        let name = review.attributes(None)?.namespace().to_owned();
        if name.is_empty() {
            return Ok(None);
        }
        let found = namespace(&self.index, &self.cluster, &name).await;
        found.map_err(AnswerError::Namespace)
    }
}

async fn mutate(
    State(server): State<Arc<PolicyServer>>,
    Extension(client): Extension<ConnectedClient>,
    request: Request,
) -> Response {
    server
        .respond(Stage::Override, client.address.ip(), request)
        .await
}

async fn validate(
    State(server): State<Arc<PolicyServer>>,
    Extension(client): Extension<ConnectedClient>,
    request: Request,
) -> Response {
    server
        .respond(Stage::Validate, client.address.ip(), request)
        .await
}

async fn version(State(server): State<Arc<PolicyServer>>) -> Json<Value> {
    Json(server.store.current().version())
}

/// Evaluates a request with the referenced data in `answers`. Requests about policies are not evaluated by
/// policies: a wrong policy could then not be fixed.
fn judge(
    stage: Stage,
    attributes: &AdmissionAttributes<'_>,
    policies: &PolicySnapshot,
    (store, ledger): (&PolicyStore, &AuditLedger),
    (answers, hosts): (&Answers, &AllowedHosts),
    (permit, evaluated): (&EvaluationPermit, &EvaluatedPolicies),
) -> PolicyEvaluation<Verdict> {
    if admission::is_about_policy(attributes) {
        return PolicyEvaluation::Done(match stage {
            Stage::Override => admission::mutate(attributes),
            Stage::Validate => admission::validate(attributes, store.engines(), hosts),
        });
    }
    let is_over = || permit.is_over();
    let gate = RequestGate::new(policies, &is_over, evaluated);
    let is_over = || gate.is_over();
    let budget = EvaluationBudget {
        is_over: &is_over,
        gate: &gate,
        ..EvaluationBudget::default()
    };
    match stage {
        Stage::Override => {
            let outcome = match policies.set.override_object(attributes, answers, &budget) {
                PolicyEvaluation::Done(outcome) => outcome,
                PolicyEvaluation::Missing(missing) => {
                    return PolicyEvaluation::Missing(
                        missing
                            .into_iter()
                            // Fetched at the same time for later policies.
                            .chain(policies.set.override_needs(attributes))
                            .filter(|reference| answers.get(reference).is_none())
                            .collect::<HashSet<_>>()
                            .into_iter()
                            .collect(),
                    );
                }
            };
            record_results(&gate, &outcome.ignored, store);
            store.metrics().record_override(attributes, &outcome);
            PolicyEvaluation::Done(Verdict::from_override(outcome))
        }
        Stage::Validate => {
            let outcome = match policies.set.validate(attributes, answers, &budget) {
                PolicyEvaluation::Done(outcome) => outcome,
                PolicyEvaluation::Missing(missing) => return PolicyEvaluation::Missing(missing),
            };
            record_results(&gate, &outcome.ignored, store);
            store.metrics().record_validation(attributes, &outcome);
            ledger.record(attributes, &outcome, policies, |policy| gate.admits(policy));
            if let Some(message) = outcome.message() {
                info!(kind = attributes.kind().1, namespace = attributes.namespace(), name = attributes.name(), %message, "Denied a request");
            }
            PolicyEvaluation::Done(Verdict::from_validation(&outcome))
        }
    }
}

/// Records the results of the evaluated policies; `ignored` are failures of policies with failure policy
/// `Ignore`.
fn record_results(gate: &RequestGate<'_>, ignored: &[PolicyFailure], store: &PolicyStore) {
    for failure in ignored {
        warn!(policy = %failure.policy, error = %failure, "Ignored the failure of a policy because of its failurePolicy");
    }
    gate.record_durations(|policy, took| store.metrics().record_evaluation(policy, took));
    if gate.conclude(ignored) {
        store.note_suspensions();
    }
}

/// Returns how long an answer may take: less than the timeout in the query, so that the answer arrives in
/// time.
fn time_limit(query: Option<&str>) -> Duration {
    let parameters = query.unwrap_or_default().split('&');
    let stated = parameters
        .filter_map(|parameter| parameter.strip_prefix("timeout="))
        .find_map(|timeout| timeout.parse::<GoDuration>().ok());
    let timeout = stated.map_or(DEFAULT_PATIENCE, |GoDuration(timeout)| timeout.unsigned_abs());
    timeout.min(LONGEST_PATIENCE) * 4 / 5
}

impl PendingReview {
    fn evaluate(&self, permit: &EvaluationPermit) -> Result<PolicyEvaluation<Verdict>, AnswerError> {
        let attributes = self.review.attributes(self.namespace.as_deref())?;
        let known = (&self.answers, self.references.hosts());
        let Self {
            policies,
            store,
            ledger,
            ..
        } = self;
        let progress = (permit, &self.evaluated);
        Ok(judge(
            self.stage,
            &attributes,
            policies,
            (store, ledger),
            known,
            progress,
        ))
    }
}

impl ReferenceReading {
    /// Returns the limits of fetching data for a review, which leave time for the evaluation that follows.
    fn for_review(review: &PolicyReview, deadline: Instant) -> Self {
        let left = deadline.saturating_duration_since(Instant::now());
        let is_dry_run = review.request.get("dryRun").and_then(Value::as_bool);
        Self {
            until: deadline.checked_sub(left / 8).unwrap_or(deadline),
            is_dry_run: is_dry_run.unwrap_or_default(),
        }
    }
}

impl Stage {
    /// The value of the metrics label `stage`.
    fn name(self) -> &'static str {
        match self {
            Self::Override => "mutate",
            Self::Validate => "validate",
        }
    }
}

impl AnswerError {
    fn status(&self) -> StatusCode {
        match self {
            Self::Body(error) => error.status(),
            Self::Invalid(_) => StatusCode::BAD_REQUEST,
            Self::Unsynced | Self::Busy | Self::Namespace(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Evaluation(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_limit_is_below_the_timeout_of_the_client() {
        for (query, expected) in [
            (None, 8),
            (Some("timeout=5s"), 4),
            (Some("a=b&timeout=10s"), 8),
            (Some("timeout=soon"), 8),
            (Some("timeout=1h"), 24),
        ] {
            assert_eq!(time_limit(query), Duration::from_secs(expected), "{query:?}");
        }
    }
}
