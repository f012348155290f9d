//! Answers AdmissionReviews from policies.

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
    references::{AllowedHosts, ReferenceReading, References},
    reports::AuditLedger,
    request_gate::{AskedPolicies, RequestGate},
    review::PolicyReview,
    snapshot::PolicySnapshot,
    store::PolicyStore,
    turns::{EvaluationTurn, EvaluationTurns},
    verdict::Verdict,
};
use crate::{
    admission::{Bodies, InvalidReview, ReadBodyError, SHORT_BODY},
    namespaces::namespace,
};

/// The path that override policies answer at.
pub const MUTATE_PATH: &str = "/mutate";

/// The path that validate policies answer at.
pub const VALIDATE_PATH: &str = "/validate";

/// The path at which is said which policies are known.
pub(super) const VERSION_PATH: &str = "/policies";

/// Answers AdmissionReviews from policies.
pub(crate) struct PolicyServer {
    store: Arc<PolicyStore>,
    index: Arc<Index>,
    /// Reads Namespaces that the watch has not seen yet.
    cluster: Cluster,
    bodies: Arc<Bodies>,
    references: Arc<References>,
    ledger: Arc<AuditLedger>,
    turns: EvaluationTurns,
}

/// A request that policies are asked about, again each time that more is known of what they refer to.
struct AskedReview {
    stage: Stage,
    review: PolicyReview,
    namespace: Option<Arc<Value>>,
    policies: Arc<PolicySnapshot>,
    store: Arc<PolicyStore>,
    references: Arc<References>,
    ledger: Arc<AuditLedger>,
    answers: Answers,
    reading: ReferenceReading,
    asked: AskedPolicies,
    /// Held as long as its body is.
    _room: OwnedSemaphorePermit,
}

/// Which policies are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Override,
    Validate,
}

/// Why a request is not answered by an AdmissionReview.
#[derive(Debug, Error)]
enum AnswerError {
    #[error(transparent)]
    Body(#[from] ReadBodyError),
    #[error(transparent)]
    Invalid(#[from] InvalidReview),
    #[error("caches of policies not synced yet; try again later")]
    Unsynced,
    #[error("too many requests; try again later")]
    Busy,
    #[error("cannot read the Namespace of the object")]
    Namespace(#[source] RequestError),
    #[error("the evaluation of a policy failed; report this as a bug of Windlass")]
    Evaluation(#[source] JoinError),
}

/// How long whoever does not say so waits for an answer: as the API server does by default.
const DEFAULT_PATIENCE: Duration = Duration::from_secs(10);

/// The longest that an API server waits.
const LONGEST_PATIENCE: Duration = Duration::from_secs(30);

// === impl PolicyServer ===

impl PolicyServer {
    /// Answers from the policies in `store`; `client` sends as the operator, whether it leads or not.
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
            turns: EvaluationTurns::new(processors),
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
        let deadline = began + patience(request.uri().query());
        let answer = timeout_at(deadline, self.answer(stage, client, request, deadline)).await;
        let answer = answer.unwrap_or(Err(AnswerError::Busy));
        let metrics = self.store.metrics();
        metrics.answered(stage.name(), answer.is_ok(), began.elapsed());
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
        // A longer one takes a thread: reading it would be in the way of others.
        let review = if body.bytes.len() <= SHORT_BODY {
            PolicyReview::read(&body.bytes)?
        } else {
            let bytes = body.bytes;
            spawn_blocking(move || PolicyReview::read(&bytes))
                .await
                .map_err(AnswerError::Evaluation)??
        };
        let policies = self.store.current();
        // One that does not know all policies must not say that none objects.
        if !policies.is_complete {
            return Err(AnswerError::Unsynced);
        }
        let namespace = self.namespace_of(&review).await?;
        let mut asked = Box::new(AskedReview {
            reading: ReferenceReading::of(&review, deadline),
            stage,
            review,
            namespace,
            policies,
            store: self.store.clone(),
            references: self.references.clone(),
            ledger: self.ledger.clone(),
            answers: Answers::default(),
            asked: AskedPolicies::default(),
            _room: body.room,
        });
        loop {
            // Nobody has a turn while it waits for what is read.
            let turn = self.turns.take(deadline).await.ok_or(AnswerError::Busy)?;
            let evaluated = spawn_blocking(move || {
                let evaluation = asked.evaluate(&turn);
                (asked, evaluation)
            });
            let evaluation;
            (asked, evaluation) = evaluated.await.map_err(AnswerError::Evaluation)?;
            match evaluation? {
                PolicyEvaluation::Done(verdict) => return Ok(verdict.answer(&asked.review.uid)),
                // Never one that was answered: this ends.
                PolicyEvaluation::Missing(missing) => {
                    let AskedReview { reading, answers, .. } = &mut *asked;
                    self.references.read(missing, *reading, answers).await;
                }
            }
        }
    }

    /// The Namespace that an object is in.
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
    Json(server.store.current().described())
}

/// What is said to a request while it has its turn, as far as `answers` have what policies refer to. Policies are not asked about
/// policies: a wrong one could not be mended then.
fn judge(
    stage: Stage,
    attributes: &AdmissionAttributes<'_>,
    policies: &PolicySnapshot,
    (store, ledger): (&PolicyStore, &AuditLedger),
    (answers, hosts): (&Answers, &AllowedHosts),
    (turn, asked): (&EvaluationTurn, &AskedPolicies),
) -> PolicyEvaluation<Verdict> {
    if admission::is_about_policy(attributes) {
        return PolicyEvaluation::Done(match stage {
            Stage::Override => admission::mutate(attributes),
            Stage::Validate => admission::validate(attributes, store.engines(), hosts),
        });
    }
    let is_over = || turn.is_over();
    let gate = RequestGate::new(policies, &is_over, asked);
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
                            // What later policies need is read at the same time.
                            .chain(policies.set.override_needs(attributes))
                            .filter(|reference| answers.get(reference).is_none())
                            .collect::<HashSet<_>>()
                            .into_iter()
                            .collect(),
                    );
                }
            };
            note_fared(&gate, &outcome.ignored, store);
            store.metrics().overridden(attributes, &outcome);
            PolicyEvaluation::Done(Verdict::of_override(outcome))
        }
        Stage::Validate => {
            let outcome = match policies.set.validate(attributes, answers, &budget) {
                PolicyEvaluation::Done(outcome) => outcome,
                PolicyEvaluation::Missing(missing) => return PolicyEvaluation::Missing(missing),
            };
            note_fared(&gate, &outcome.ignored, store);
            store.metrics().validated(attributes, &outcome);
            ledger.note(attributes, &outcome, policies, |policy| gate.asks(policy));
            if let Some(message) = outcome.message() {
                info!(kind = attributes.kind().1, namespace = attributes.namespace(), name = attributes.name(), %message, "Denied a request");
            }
            PolicyEvaluation::Done(Verdict::of_validation(&outcome))
        }
    }
}

/// Notes how the policies have fared that were asked, of which `ignored` failed and may.
fn note_fared(gate: &RequestGate<'_>, ignored: &[PolicyFailure], store: &PolicyStore) {
    for failure in ignored {
        warn!(policy = %failure.policy, error = %failure, "Ignored the failure of a policy, as it says");
    }
    gate.durations(|policy, took| store.metrics().evaluated(policy, took));
    if gate.conclude(ignored) {
        store.note_suspensions();
    }
}

/// How long there is for an answer to whoever says with the query for how long they wait: less, so that they get it.
fn patience(query: Option<&str>) -> Duration {
    let parameters = query.unwrap_or_default().split('&');
    let said = parameters
        .filter_map(|parameter| parameter.strip_prefix("timeout="))
        .find_map(|timeout| timeout.parse::<GoDuration>().ok());
    let waits = said.map_or(DEFAULT_PATIENCE, |GoDuration(timeout)| timeout.unsigned_abs());
    waits.min(LONGEST_PATIENCE) * 4 / 5
}

// === impl AskedReview ===

impl AskedReview {
    fn evaluate(&self, turn: &EvaluationTurn) -> Result<PolicyEvaluation<Verdict>, AnswerError> {
        let attributes = self.review.attributes(self.namespace.as_deref())?;
        let known = (&self.answers, self.references.hosts());
        let Self {
            policies,
            store,
            ledger,
            ..
        } = self;
        let kept = (turn, &self.asked);
        Ok(judge(
            self.stage,
            &attributes,
            policies,
            (store, ledger),
            known,
            kept,
        ))
    }
}

// === impl ReferenceReading ===

impl ReferenceReading {
    /// What a review may take for reading: there has to be time for what follows.
    fn of(review: &PolicyReview, deadline: Instant) -> Self {
        let left = deadline.saturating_duration_since(Instant::now());
        let is_dry_run = review.request.get("dryRun").and_then(Value::as_bool);
        Self {
            until: deadline.checked_sub(left / 8).unwrap_or(deadline),
            is_dry_run: is_dry_run.unwrap_or_default(),
        }
    }
}

// === impl Stage ===

impl Stage {
    /// As it is counted.
    fn name(self) -> &'static str {
        match self {
            Self::Override => "mutate",
            Self::Validate => "validate",
        }
    }
}

// === impl AnswerError ===

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
    fn an_answer_comes_before_whoever_waits_gives_up() {
        for (query, expected) in [
            (None, 8),
            (Some("timeout=5s"), 4),
            (Some("a=b&timeout=10s"), 8),
            (Some("timeout=soon"), 8),
            (Some("timeout=1h"), 24),
        ] {
            assert_eq!(patience(query), Duration::from_secs(expected), "{query:?}");
        }
    }
}
